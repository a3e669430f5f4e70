"""Loss and metric on a split, and the loss of a co-trained batch."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score

from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.optimisation.batches import Batch
from lifelong_core.develop.training.optimisation.classifier import Computing, CoTrainedClassifier
from lifelong_core.develop.training.optimisation.losses import batch_loss, score, split_logits


def test_the_score_weighs_classes_as_training_does() -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice(3, size=200, p=[0.7, 0.2, 0.1])
    logits = torch.from_numpy(rng.normal(size=(200, 3)).astype(np.float32))
    found = score(logits, labels, np.array([0.2, 0.3, 0.5]))
    each = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels), reduction="none").numpy()
    expected = sum(share * each[labels == label].mean() for label, share in enumerate((0.2, 0.3, 0.5)))
    assert found.loss == pytest.approx(expected, rel=1e-6)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(labels, logits.argmax(1)))


def test_co_training_weighs_both_tasks_equally_and_each_head_sees_its_own_images() -> None:
    class Heads(CoTrainedClassifier):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)

        def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            value = images.flatten(1).mean(1, keepdim=True)
            return torch.cat([value, -value], 1), torch.cat([value, 2 * value, -value], 1)

    images = torch.tensor([10, 200, 30], dtype=torch.uint8).view(3, 1, 1, 1)
    computing = Computing(torch.device("cpu"), False, torch.zeros(1, 1, 1), torch.full((1, 1, 1), 0.1))
    batch = Batch(images, torch.tensor([0]), torch.tensor([1, 2]))
    values = images.flatten() / 25.5
    target = torch.nn.functional.cross_entropy(torch.stack([values[:1], -values[:1]], 1), batch.labels)
    others = values[1:]
    source = torch.nn.functional.cross_entropy(
        torch.stack([others, 2 * others, -others], 1), batch.source_labels
    )
    assert float(batch_loss(Heads(), batch, computing)) == pytest.approx(float(target + source) / 2, rel=1e-5)


@pytest.mark.parametrize(("edge", "at_once"), [(32, 256), (256, 256), (1024, 16), (8192, 1)])
def test_few_large_images_are_evaluated_at_once(edge: int, at_once: int) -> None:
    sizes: list[int] = []

    def logits(_: torch.nn.Module, inputs: np.ndarray) -> torch.Tensor:
        sizes.append(len(inputs))
        return torch.from_numpy(inputs)

    images: Any = SimpleNamespace(input_size=(edge, edge), inputs=lambda at: at[:, None].astype(np.float32))
    images.batches = partial(PreparedImages.batches, images)
    computing: Any = SimpleNamespace(logits=logits)
    positions = np.arange(at_once + 1)
    found = split_logits(torch.nn.Identity(), images, positions, computing)
    assert sizes == [at_once, 1]
    assert found.flatten().tolist() == positions.tolist()
