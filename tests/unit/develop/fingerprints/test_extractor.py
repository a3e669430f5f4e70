"""Extractor references: bin edges, digest and file."""

import numpy as np
import pytest

from lifelong_core.develop.fingerprints.extractor import (
    ExtractorDocument,
    ExtractorReference,
    measure_edges,
)
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import read_npz, write_npz
from lifelong_core.values.preprocessing import Preprocessing

FEATURES = np.random.default_rng(0).normal(size=(50, 8))


def reference(**changes: object) -> ExtractorReference:
    fields: dict[str, object] = {
        "architecture": "resnet34",
        "weights": "0" * 64,
        "preprocessing": Preprocessing(),
        "reference_images": 50,
        "reference_names": ("digits",),
    }
    return ExtractorReference(ExtractorDocument.model_validate(fields | changes), measure_edges(FEATURES))


def test_a_file_gives_the_same_reference_and_the_same_bytes() -> None:
    given = reference()
    read = ExtractorReference.from_bytes(given.to_bytes())
    assert read == given
    assert read.digest == given.digest
    assert read.to_bytes() == given.to_bytes()
    assert read.features == 8


@pytest.mark.parametrize(
    "change",
    [
        {"architecture": "resnet18"},
        {"weights": "1" * 64},
        {"preprocessing": Preprocessing(mean=(0.5, 0.5, 0.5))},
        {"reference_images": 51},
        {"reference_names": ("faces",)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_field_is_part_of_the_digest(change: dict[str, object]) -> None:
    assert reference(**change).digest != reference().digest


def test_edges_are_part_of_the_digest() -> None:
    given = reference()
    edges = given.edges.copy()
    edges[3, 1] += 1e-9
    assert ExtractorReference(given.document, edges).digest != given.digest


def test_edges_are_the_quantiles() -> None:
    edges = measure_edges(FEATURES)
    assert edges[2] == pytest.approx([np.quantile(FEATURES[:, 2], 0.05), np.quantile(FEATURES[:, 2], 0.95)])


def test_a_feature_without_spread_gets_bins_of_width() -> None:
    assert measure_edges(np.full((4, 1), 3.0)).tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    "features", [np.zeros(3), np.zeros((1, 3)), np.full((3, 3), np.nan)], ids=["shape", "one", "nan"]
)
def test_edges_need_finite_features_of_several_images(features: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="features"):
        measure_edges(features)


@pytest.mark.parametrize("edges", [[[0.0, 0.0]], [[1.0, 0.0]], [[0.0, np.inf]], [0.0, 1.0], []])
def test_edges_must_increase(edges: list[object]) -> None:
    with pytest.raises(InvalidInputError, match="edges"):
        ExtractorReference(reference().document, np.asarray(edges))


def test_edges_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        reference().edges[0, 0] = 5


@pytest.mark.parametrize(
    "content",
    [b"", b"no npz file", write_npz({"edges": FEATURES})],
    ids=["empty", "text", "no document"],
)
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidInputError):
        ExtractorReference.from_bytes(content)


def test_a_newer_version_is_refused() -> None:
    arrays = read_npz(reference().to_bytes(), ("document", "edges"), field="file")
    document = arrays["document"].tobytes().replace(b'"schema_version":1', b'"schema_version":2')
    newer = write_npz({"document": np.frombuffer(document, dtype=np.uint8), "edges": arrays["edges"]})
    with pytest.raises(InvalidInputError, match="schema_version"):
        ExtractorReference.from_bytes(newer)
