"""Loss of a batch, and loss and metric on a split."""
# pyright: reportUnknownMemberType=false

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.optimisation.batches import Batch
from lifelong_core.develop.training.optimisation.classifier import CoTrainedClassifier
from lifelong_core.develop.training.optimisation.computing import Computing
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True)
class Score:
    """How good a model is on a split.

    Attributes:
        loss: mean cross-entropy within each class, averaged with the class shares of training, so that it is the loss
            that training lowers.
        balanced_accuracy: mean sensitivity of the classes.
    """

    loss: float
    balanced_accuracy: float


def batch_loss(module: nn.Module, batch: Batch, computing: Computing) -> torch.Tensor:
    """Mean cross-entropy; in co-training, the mean of both tasks' (thesis, section 5.1.3)."""
    inputs = computing.inputs(batch.images)
    labels = batch.labels.to(computing.device)
    with computing.precision():
        if not isinstance(module, CoTrainedClassifier):
            return nn.functional.cross_entropy(module(inputs), labels)
        target, source = module(inputs)
        losses = (
            nn.functional.cross_entropy(target[: len(labels)], labels),
            nn.functional.cross_entropy(source[len(labels) :], batch.source_labels.to(computing.device)),
        )
    return (losses[0] + losses[1]) / 2


def split_logits(
    module: nn.Module, images: PreparedImages, positions: NDArray[np.int64], computing: Computing
) -> torch.Tensor:
    """Logits (n, classes) of these images, in evaluation mode."""
    module.eval()
    return torch.cat([computing.logits(module, inputs) for inputs in images.batches(positions)])


def score(logits: torch.Tensor, labels: NDArray[np.int64], mix: Floats) -> Score:
    """Score logits (n, C).

    Args:
        logits: float32.
        labels: (n,); each class occurs.
        mix: shares of the classes in training, (C,).
    """
    losses = nn.functional.cross_entropy(logits, torch.from_numpy(labels), reduction="none").numpy()
    right = (logits.argmax(1).numpy() == labels).astype(np.float64)
    counts = np.bincount(labels, minlength=len(mix))
    means, sensitivities = (
        np.bincount(labels, values, minlength=len(mix)) / counts for values in (losses, right)
    )
    return Score(float(mix @ means), float(sensitivities.mean()))
