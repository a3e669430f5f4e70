"""The Fisher embedding of a task: which kernels of the backbone matter to its classes."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The types of torch are incomplete.

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from lifelong_core.develop.features.backbone import Backbone
from lifelong_core.develop.features.collection import LabelledFeatures
from lifelong_core.develop.features.extraction import DecodedImage
from lifelong_core.develop.features.sources.entry import Entry
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.develop.fingerprints.fisher import FisherFingerprint
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

LATER_SHARE = 0.6
"""of the convolutions and linear layers: those that the embedding covers"""

_BATCH_SIZE = 32
_LEARNING_RATE = 1e-3
_LEAST_DEVIATION = 0.1
"""of the mean of all standard deviations"""
_LEFT_OUT = "downsample"


def embed_task(
    backbone: Backbone,
    labelled: LabelledFeatures,
    decode: Callable[[Iterable[Entry]], Iterable[DecodedImage]],
    extractor: ExtractorReference,
    *,
    draws: int = 2000,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> FisherFingerprint:
    """Return the Fisher embedding of a task (thesis, definition 5.10).

    A linear head is fitted for one epoch (Adam, learning rate 0.001, batches of 32) to the features, with the backbone
    frozen (`fit_head`). Then the diagonal of the Fisher information is estimated by draws: an image at random, a class
    from the predicted probabilities, the squared gradient of the log-probability (not of the probability, as the
    definition has it by mistake) for the kernels of the backbone.

    As in the thesis, biases, normalisation and downsampling layers are left out, and the first 40 % of the layers. Its
    entries are means over parts of a kernel; here one entry is the mean over one filter, as in Task2Vec (Achille et al.
    2019): a few thousand numbers instead of millions.

    Args:
        backbone: its weights are not changed.
        labelled: features of at least two classes.
        decode: reads images again.
        extractor: reference of the backbone.
        draws: number of draws.
        seed: of head, images and classes.
        progress: called with the number of draws so far.

    Raises:
        InvalidInputError: fewer than two classes, `draws` below 1, or no gradient at all.
    """
    if draws < 1:
        raise InvalidInputError(f"expected at least 1, got {draws}.", field="draws")
    if len(labelled.labels) == 0 or labelled.labels.max() < 1:
        raise InvalidInputError(
            "a Fisher embedding needs readable images of at least two classes.", field="images"
        )
    head = fit_head(labelled, seed=seed).to(backbone.device)
    drawn = _draw_images(labelled.entries, draws, seed)
    total = _squared_gradients(backbone, head, decode(drawn), drawn, seed, progress)
    count = len(labelled.entries)
    return FisherFingerprint(extractor.digest, count, total / draws, seed)


def fit_head(labelled: LabelledFeatures, *, seed: int = 0) -> nn.Linear:
    """A linear classifier of the features after one epoch.

    It is fitted to standardised features, without which few steps of Adam do not reach a bias; the result takes the
    features as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    features = torch.from_numpy(labelled.features)
    labels = torch.from_numpy(labelled.labels)
    mean, scale = features.mean(dim=0), _scale(features)
    head = nn.Linear(features.shape[1], int(labels.max()) + 1)
    nn.init.normal_(head.weight, std=0.01, generator=generator)
    nn.init.zeros_(head.bias)
    optimiser = torch.optim.Adam(head.parameters(), lr=_LEARNING_RATE)
    for rows in torch.randperm(len(labels), generator=generator).split(_BATCH_SIZE):
        optimiser.zero_grad()
        logits = head((features[rows] - mean) / scale)
        nn.functional.cross_entropy(logits, labels[rows]).backward()
        optimiser.step()
    with torch.no_grad():
        head.weight.div_(scale)
        head.bias.sub_(head.weight @ mean)
    return head


def _scale(features: torch.Tensor) -> torch.Tensor:
    """Standard deviations, those of nearly constant features enlarged, so that these are not magnified."""
    deviations = features.std(dim=0, correction=0)
    smallest = _LEAST_DEVIATION * deviations.mean()
    return deviations.clamp(min=float(smallest)) if smallest > 0 else torch.ones_like(deviations)


def embedded_kernels(module: nn.Module) -> dict[str, nn.Parameter]:
    """The weights of the later 60 % of the convolutions and linear layers, downsampling ones left out, by name."""
    kernels = {
        name: parameter
        for name, parameter in module.named_parameters()
        if parameter.ndim >= 2 and _LEFT_OUT not in name
    }
    first = len(kernels) - math.ceil(LATER_SHARE * len(kernels))
    return dict(list(kernels.items())[first:])


def _draw_images(entries: Sequence[Entry], draws: int, seed: int) -> Counter[Entry]:
    """How often each image is drawn."""
    rng = np.random.default_rng(seed)
    return Counter(entries[index] for index in rng.integers(len(entries), size=draws).tolist())


@contextmanager
def _only_differentiating(module: nn.Module, kernels: Sequence[nn.Parameter]) -> Generator[None]:
    """Compute gradients of these weights only."""
    before = {parameter: parameter.requires_grad for parameter in module.parameters()}
    module.requires_grad_(False)  # noqa: FBT003
    for kernel in kernels:
        kernel.requires_grad_(True)  # noqa: FBT003
    try:
        yield
    finally:
        for parameter, required in before.items():
            parameter.requires_grad_(required)


def _squared_gradients(
    backbone: Backbone,
    head: nn.Linear,
    images: Iterable[DecodedImage],
    drawn: Counter[Entry],
    seed: int,
    progress: Callable[[int], None] | None,
) -> Floats:
    """Sum over all draws of the squared gradient, averaged over each filter."""
    kernels = list(embedded_kernels(backbone.module).values())
    generator = torch.Generator().manual_seed(seed)
    total = [torch.zeros(len(kernel), dtype=torch.float64, device=backbone.device) for kernel in kernels]
    done = 0
    with _only_differentiating(backbone.module, kernels):
        for image in images:
            if image.pixels is None:  # it was readable before
                raise InvalidInputError(
                    f"{image.entry.name} can no longer be read: {image.problem}", field="images"
                )
            pixels = torch.from_numpy(image.pixels[None]).to(backbone.device)
            log_probabilities = head(backbone.module(pixels)).log_softmax(dim=1)[0]
            times = drawn[image.entry]
            probabilities = log_probabilities.detach().exp().cpu()
            classes = torch.multinomial(probabilities, times, replacement=True, generator=generator)
            for label, repeats in Counter(classes.tolist()).items():
                gradients = torch.autograd.grad(log_probabilities[label], kernels, retain_graph=True)
                for sums, gradient in zip(total, gradients, strict=True):
                    sums += repeats * gradient.double().square().flatten(1).mean(dim=1)
            done += times
            if progress is not None:
                progress(done)
    return torch.cat(total).cpu().numpy()
