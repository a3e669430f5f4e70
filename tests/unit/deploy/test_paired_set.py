"""Labelled logits of two models on the same samples."""

import io
from typing import Any

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError

NEW = np.array([[2.0, 0.0], [0.5, 1.0], [0.0, 3.0]], np.float32)
CURRENT = NEW[::-1].copy()
LABELS = np.array([0, 1, 1])


def archive(**changes: Any) -> bytes:
    arrays = {"logits": NEW, "current_logits": CURRENT, "labels": LABELS} | changes
    file = io.BytesIO()
    np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
    return file.getvalue()


def test_it_is_written_and_read_back() -> None:
    new = LabelledSet(
        LabeledLogits(NEW, LABELS, np.array(["p", "q", "q"])), {"scanner": np.array(["A", "B", "B"])}
    )
    both = PairedSet(new, CURRENT, np.array(["a.png", "b.png", "ü.png"]), ("skin@2", "skin@1"))
    read = PairedSet.from_bytes(both.to_bytes())
    assert read == both
    assert read.to_bytes() == both.to_bytes()
    assert PairedSet.from_bytes(archive()).names is None
    assert PairedSet.from_bytes(archive()).models is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"current_logits": CURRENT[:2]}, "current_logits"),
        ({"current_logits": np.full((3, 2), np.nan)}, "current_logits"),
        ({"current_logits": None}, "current_logits"),
        ({"names": np.array(["a", "b"])}, "names"),
        ({"names": np.arange(3)}, "names"),
        ({"names": np.array(["x" * 201] * 3)}, "names"),
        ({"names": np.array([b"\xff"] * 3)}, "names"),
        ({"names": np.array(["\ud800"] * 3)}, "names"),
        ({"names": np.full(3, 0x7FFFFFFF, np.uint32).view("U1")}, "names"),
        ({"models": np.array(["skin@2"])}, "models"),
        ({"models": np.array([2, 1])}, "models"),
        ({"labels": np.array([0, 1, 2])}, "labels"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        PairedSet.from_bytes(archive(**changes))
    assert caught.value.field == field


def test_its_size_is_limited() -> None:
    with pytest.raises(PayloadTooLargeError):
        PairedSet.from_bytes(archive(), maximum_bytes=50)
