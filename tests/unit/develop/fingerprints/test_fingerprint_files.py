"""Files of fingerprints: round trips, sizes, and files that must be refused."""

import io
import json
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.fisher import FisherFingerprint, KeywordFingerprint
from lifelong_core.develop.fingerprints.gaussian import GaussianFingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint, make_histogram_fingerprint
from lifelong_core.develop.fingerprints.kinds import KINDS, fingerprint_from_bytes
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.npz import read_npz, write_npz
from tests.unit.develop.fingerprints.examples import draw_features, fingerprints_of, make_extractor

EXAMPLES = fingerprints_of(draw_features(0))
PLAIN: tuple[tuple[Fingerprint, str], ...] = (
    (
        HistogramFingerprint(
            "0" * 64, 3, np.array([[1, 2], [0, 3]]), np.array([0.5, 1]), np.array([0.25, 0.75])
        ),
        "271997b4",
    ),
    (GaussianFingerprint("0" * 64, 3, np.array([0.5, 1]), np.array([[2, 0.5], [0.5, 1]])), "d8374ba2"),
    (FeatureFingerprint("0" * 64, 2, np.array([[1, 2], [0.5, 0.25]])), "63eb7207"),
    (FisherFingerprint("0" * 64, 3, np.array([0.5, 2])), "f8e4ce5d"),
    (KeywordFingerprint(("endoscopy", "polyp")), "df9c3954"),
)
"""With the first digits of their digests, which may change only with the schema version: stored fingerprints are found
by them."""

Arrays = dict[str, NDArray[np.generic]]


@pytest.fixture(params=list(EXAMPLES))
def example(request: pytest.FixtureRequest) -> Fingerprint:
    return EXAMPLES[request.param]


def test_there_is_an_example_of_each_kind() -> None:
    assert EXAMPLES.keys() == KINDS.keys()


def test_a_file_gives_the_same_fingerprint(example: Fingerprint) -> None:
    content = example.to_bytes()
    read = fingerprint_from_bytes(content)
    assert type(read) is type(example)
    assert read == example
    assert read.digest == example.digest
    assert read.to_bytes() == content
    assert type(example).from_bytes(content) == example


@pytest.mark.parametrize(("fingerprint", "digest"), PLAIN, ids=lambda value: getattr(value, "kind", "digest"))
def test_the_digest_is_stable(fingerprint: Fingerprint, digest: str) -> None:
    assert fingerprint.digest[:8] == digest


def test_other_features_give_another_digest(example: Fingerprint) -> None:
    assert fingerprints_of(draw_features(1))[example.kind].digest != example.digest


def test_a_class_reads_only_its_kind(example: Fingerprint) -> None:
    for kind, other in EXAMPLES.items():
        if kind != example.kind:
            with pytest.raises(InvalidInputError, match=f"kind {example.kind}, got '{kind}'"):
                type(example).from_bytes(other.to_bytes())


def test_the_file_of_a_usual_fingerprint_is_below_60_kb() -> None:
    """B = 100, m = 512, n = 10,000, features as of a ResNet34, edges at the quantiles of other tasks."""
    rng = np.random.default_rng(0)
    shape, scale = rng.uniform(0.6, 4, 512), rng.uniform(0.1, 0.6, 512)
    reference = rng.gamma(shape, scale, (2000, 512))
    low, high = np.quantile(reference, [0.05, 0.95], axis=0)
    extractor = make_extractor(features=512)
    object.__setattr__(extractor, "edges", np.stack([low, high], axis=1))
    features = rng.gamma(shape * rng.uniform(0.6, 1.5, 512), scale, (10_000, 512))
    fingerprint = make_histogram_fingerprint(features, extractor)
    content = fingerprint.to_bytes()
    assert len(content) < 60_000
    assert fingerprint_from_bytes(content) == fingerprint


def parts(fingerprint: Fingerprint) -> tuple[dict[str, object], Arrays]:
    """The header and the arrays of the file."""
    arrays = read_npz(fingerprint.to_bytes(), ["header"], prefix="", field="file")
    return json.loads(arrays.pop("header").tobytes()), arrays


def assemble(header: object, arrays: Arrays) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return write_npz({"header": np.frombuffer(text, dtype=np.uint8), **arrays})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "schema version 2.*Update lifelong"),
        ({"schema_version": 0}, "schema_version"),
        ({"kind": "embedding"}, "got 'embedding'"),
        ({"kind": "gaussian"}, "expected the arrays"),
        ({"extractor": "resnet34"}, "extractor"),
        ({"samples": 0}, "samples"),
        ({"samples": -40}, "samples"),
        ({"samples": 41}, "do not sum to 41"),
        ({"samples": "many"}, "samples"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"images": []}, "no such field"),
        ({"privacy": {"epsilon": 0}}, "epsilon"),
        ({"privacy": {"epsilon": 1, "delta": 1}}, "delta"),
    ],
    ids=str,
)
def test_a_header_with_illegal_values_is_refused(change: dict[str, object], message: str) -> None:
    header, arrays = parts(EXAMPLES["histogram"])
    assert fingerprint_from_bytes(assemble(header, arrays)) == EXAMPLES["histogram"]
    with pytest.raises(InvalidInputError, match=message):
        fingerprint_from_bytes(assemble(header | change, arrays))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"schema_version": 1}']
)
def test_a_header_that_is_no_document_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInputError):
        fingerprint_from_bytes(assemble(text, parts(EXAMPLES["histogram"])[1]))


Change = Callable[[Arrays], object]


def float_counts(arrays: Arrays) -> None:
    arrays["counts"] = arrays["counts"].astype(np.float64)


def signed_counts(arrays: Arrays) -> None:
    arrays["counts"] = arrays["counts"].astype(np.int8)


def wide_counts(arrays: Arrays) -> None:
    arrays["counts"] = arrays["counts"].astype(np.uint64)


def flat_counts(arrays: Arrays) -> None:
    arrays["counts"] = arrays["counts"].ravel()


def no_counts(arrays: Arrays) -> None:
    arrays["counts"] = np.zeros((1, 0, 5), dtype=np.uint8)


def overflowing_counts(arrays: Arrays) -> None:
    arrays["counts"] = np.full((4, 100, 5), 255, dtype=np.uint8)


def many_planes(arrays: Arrays) -> None:
    arrays["counts"] = np.zeros((9, 100, 5), dtype=np.uint8)


def short_means(arrays: Arrays) -> None:
    arrays["mean_features"] = arrays["mean_features"][:-1]


def means_with_nan(arrays: Arrays) -> None:
    arrays["mean_features"] = np.full(5, np.nan, dtype=np.float32)


def infinite_means(arrays: Arrays) -> None:
    arrays["mean_features"] = np.full(5, 1e300)


def complex_means(arrays: Arrays) -> None:
    arrays["mean_features"] = arrays["mean_features"].astype(np.complex64)


def texts_as_means(arrays: Arrays) -> None:
    arrays["mean_features"] = arrays["mean_features"].astype(np.str_)


def negative_shares(arrays: Arrays) -> None:
    arrays["mean_shares"] = np.array([-1, 1, 1, 0, 0], dtype=np.float32)


def shares_above_one(arrays: Arrays) -> None:
    arrays["mean_shares"] = np.ones(5, dtype=np.float32)


def missing_array(arrays: Arrays) -> None:
    del arrays["mean_shares"]


def further_array(arrays: Arrays) -> None:
    arrays["images"] = np.zeros(3)


@pytest.mark.parametrize(
    "change",
    [
        float_counts,
        signed_counts,
        wide_counts,
        flat_counts,
        no_counts,
        overflowing_counts,
        many_planes,
        short_means,
        means_with_nan,
        infinite_means,
        complex_means,
        texts_as_means,
        negative_shares,
        shares_above_one,
        missing_array,
        further_array,
    ],
    ids=lambda change: change.__name__,
)
def test_histograms_with_illegal_arrays_are_refused(change: Change) -> None:
    header, arrays = parts(EXAMPLES["histogram"])
    change(arrays)
    with pytest.raises(InvalidInputError):
        fingerprint_from_bytes(assemble(header, arrays))


def test_a_feature_without_any_count_is_refused() -> None:
    own = EXAMPLES["histogram"]
    assert isinstance(own, HistogramFingerprint)
    header, arrays = parts(own)
    arrays["counts"] = arrays["counts"].copy()
    arrays["counts"][:, :, 0] = 0
    with pytest.raises(InvalidInputError, match="feature 0 do not sum"):
        fingerprint_from_bytes(assemble(header, arrays))
    with pytest.raises(InvalidInputError, match="at least one occupied bin"):
        fingerprint_from_bytes(assemble(header | {"privacy": {"epsilon": 1}}, arrays))


@pytest.mark.parametrize(
    ("kind", "name", "array"),
    [
        ("gaussian", "triangle", np.ones(14)),
        ("gaussian", "triangle", np.full(15, np.nan)),
        ("gaussian", "triangle", -np.ones(15)),
        ("gaussian", "mean", np.ones((5, 1))),
        ("gaussian", "mean", np.zeros(0)),
        ("features", "rows", np.ones((39, 5))),
        ("features", "rows", np.ones(40)),
        ("features", "rows", np.ones((40, 0))),
        ("features", "rows", np.full((40, 5), np.inf)),
        ("fisher", "embedding", np.zeros(5)),
        ("fisher", "embedding", -np.ones(5)),
        ("fisher", "embedding", np.zeros(0)),
        ("fisher", "embedding", np.ones((5, 5))),
        ("fisher", "embedding", np.full(5, np.nan)),
    ],
)
def test_other_kinds_with_illegal_arrays_are_refused(
    kind: str, name: str, array: NDArray[np.float64]
) -> None:
    header, arrays = parts(EXAMPLES[kind])
    with pytest.raises(InvalidInputError):
        fingerprint_from_bytes(assemble(header, arrays | {name: array}))


@pytest.mark.parametrize(
    "keywords", [[], [""], [" "], ["x" * 101], [3], "text", [f"{n}" for n in range(101)]]
)
def test_illegal_keywords_are_refused(keywords: object) -> None:
    header, arrays = parts(EXAMPLES["keywords"])
    with pytest.raises(InvalidInputError, match="keywords"):
        fingerprint_from_bytes(assemble(header | {"keywords": keywords}, arrays))


def test_a_covariance_of_a_single_image_is_refused() -> None:
    header, arrays = parts(EXAMPLES["gaussian"])
    with pytest.raises(InvalidInputError, match="at least two images"):
        fingerprint_from_bytes(assemble(header | {"samples": 1}, arrays))


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    """Half a GiB of zeros in a file of half a MB."""
    header, _ = parts(EXAMPLES["features"])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", npy(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)))
        with archive.open("rows.npy", "w", force_zip64=True) as entry:
            start = npy_header((2**18, 512))
            entry.write(start)
            for _ in range(512):
                entry.write(bytes(2**20))
    assert len(file.getvalue()) < 2**20
    with pytest.raises(PayloadTooLargeError, match="unpacks to"):
        fingerprint_from_bytes(file.getvalue())


def test_a_declared_shape_that_is_huge_is_refused() -> None:
    header, _ = parts(EXAMPLES["features"])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.npy", npy(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)))
        archive.writestr("rows.npy", npy_header((2**40, 512)))
    with pytest.raises(PayloadTooLargeError):
        fingerprint_from_bytes(file.getvalue())


def test_the_limit_is_an_argument() -> None:
    content = EXAMPLES["features"].to_bytes()
    with pytest.raises(PayloadTooLargeError):
        fingerprint_from_bytes(content, maximum_bytes=1000)
    assert fingerprint_from_bytes(content, maximum_bytes=10_000) == EXAMPLES["features"]


def npy(array: NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy_header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_pickled_objects_are_refused() -> None:
    header, arrays = parts(EXAMPLES["keywords"])
    file = io.BytesIO()
    np.savez(file, header=np.array([header], dtype=object), **arrays)
    with pytest.raises(InvalidInputError, match="without pickled objects"):
        fingerprint_from_bytes(file.getvalue())


@given(st.sampled_from(list(EXAMPLES)), st.data())
def test_a_damaged_file_is_read_as_it_was_or_refused(kind: str, data: st.DataObject) -> None:
    content = bytearray(EXAMPLES[kind].to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(len(content) // 2, len(content))) :]
    try:
        read = fingerprint_from_bytes(bytes(content))
    except InvalidInputError:
        return
    assert read == EXAMPLES[kind]
