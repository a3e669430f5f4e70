"""The Fisher embedding against the definition, computed by hand for a linear model."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest
import torch
from torch import nn

from lifelong_core.develop.features.backbone import Backbone
from lifelong_core.develop.features.collection import LabelledFeatures
from lifelong_core.develop.features.extraction import DecodedImage
from lifelong_core.develop.features.fisher import embed_task, embedded_kernels, fit_head
from lifelong_core.develop.features.sources.entry import Entry
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.values.errors import InvalidInputError


class Linear(nn.Module):
    """Two layers: of the later 60 % both count, since 1.2 is rounded up."""

    num_features = 2

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[1.0, -2.0, 0.5], [0.3, 1.0, -1.0]]))
            self.layer.bias.zero_()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(images.flatten(1))
        return found


IMAGES = np.random.default_rng(0).normal(size=(6, 1, 1, 3)).astype(np.float32)
ENTRIES = tuple(Entry(f"{index}.png", "ab"[index % 2]) for index in range(6))


def decode(entries: Iterable[Entry]) -> Iterator[DecodedImage]:
    for entry in sorted(entries, key=lambda entry: entry.path):
        yield DecodedImage(entry, IMAGES[int(entry.path[0])], 3)


@pytest.fixture
def linear() -> Backbone:
    return Backbone("linear", Linear(), torch.device("cpu"))


@pytest.fixture
def labelled(linear: Backbone) -> LabelledFeatures:
    return LabelledFeatures(ENTRIES, linear.extract(IMAGES), np.array([0, 1] * 3))


def test_the_embedding_estimates_the_diagonal_of_the_fisher_information(
    linear: Backbone, labelled: LabelledFeatures, extractor: ExtractorReference
) -> None:
    found = embed_task(linear, labelled, decode, extractor, draws=20_000, seed=3)
    head = fit_head(labelled, seed=3)
    weight = head.weight.detach().numpy()
    logits = labelled.features @ weight.T + head.bias.detach().numpy()
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = np.zeros((2, 3))
    for image, shares in zip(IMAGES.reshape(6, 3), probabilities, strict=True):
        for label in range(2):
            outer = weight[label] - shares @ weight  # gradient of the log-probability for the features
            expected += shares[label] * np.outer(outer, image) ** 2 / 6
    assert found.embedding == pytest.approx(expected.mean(axis=1), rel=0.05)
    assert (found.samples, found.seed) == (6, 3)


def test_the_same_seed_gives_the_same_embedding(
    linear: Backbone, labelled: LabelledFeatures, extractor: ExtractorReference
) -> None:
    first, second, other = (
        embed_task(linear, labelled, decode, extractor, draws=50, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_the_backbone_stays_as_it_is(
    linear: Backbone, labelled: LabelledFeatures, extractor: ExtractorReference
) -> None:
    before = [parameter.requires_grad for parameter in linear.module.parameters()]
    weights = linear.module.state_dict()["layer.weight"].clone()
    embed_task(linear, labelled, decode, extractor, draws=5)
    assert [parameter.requires_grad for parameter in linear.module.parameters()] == before
    assert torch.equal(linear.module.state_dict()["layer.weight"], weights)
    assert linear.module.layer.weight.grad is None  # type: ignore[union-attr]


def test_the_head_learns_in_one_epoch() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    features = (rng.normal(size=(4000, 64)) + labels[:, None]).astype(np.float32)
    head = fit_head(LabelledFeatures((), features, labels))
    with torch.inference_mode():
        decided = head(torch.from_numpy(features)).argmax(dim=1).numpy()
    assert (decided == labels).mean() > 0.9


def test_constant_features_do_not_matter() -> None:
    features = np.ones((100, 3), dtype=np.float32)
    labels = np.arange(100) % 2
    assert fit_head(LabelledFeatures((), features, labels)).weight.isfinite().all()
    features[:, 0] = labels
    head = fit_head(LabelledFeatures((), features, labels))
    assert float(head.weight.detach()[:, 1:].abs().max()) < 5


def test_early_and_downsampling_layers_are_left_out(backbone: Backbone) -> None:
    names = list(embedded_kernels(backbone.module))
    kernels = [
        name
        for name, parameter in backbone.module.named_parameters()
        if parameter.ndim >= 2 and "downsample" not in name
    ]
    assert names == kernels[len(kernels) - len(names) :]
    assert len(names) == -(-len(kernels) * 6 // 10)


def fewer_classes(labelled: LabelledFeatures) -> LabelledFeatures:
    return LabelledFeatures(labelled.entries, labelled.features, labelled.labels * 0)


@pytest.mark.parametrize(
    ("change", "draws", "field"), [(fewer_classes, 5, "images"), (lambda same: same, 0, "draws")]
)
def test_wrong_arguments_are_named(
    linear: Backbone,
    labelled: LabelledFeatures,
    extractor: ExtractorReference,
    change: Callable[[LabelledFeatures], LabelledFeatures],
    draws: int,
    field: str,
) -> None:
    with pytest.raises(InvalidInputError) as raised:
        embed_task(linear, change(labelled), decode, extractor, draws=draws)
    assert raised.value.field == field
