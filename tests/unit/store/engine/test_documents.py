"""Documents are bounded when they are written, and errors at reading name the problem."""

import pytest

from lifelong_core.entities.entity import text_digest
from lifelong_core.store.engine.documents import LARGEST_DOCUMENT, document_text, values_text
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError


def test_a_document_may_take_just_so_many_bytes():
    largest = "é" * (LARGEST_DOCUMENT // 2)
    assert document_text(lambda: largest, field="interview") == largest
    with pytest.raises(PayloadTooLargeError, match=f"takes {LARGEST_DOCUMENT + 1} bytes"):
        document_text(lambda: f"{largest}.", field="interview")


def test_values_may_take_just_so_many_bytes():
    assert values_text({"a": 10}, most=8, field="payload") == '{"a":10}'
    with pytest.raises(PayloadTooLargeError, match=r"^payload: this takes 9 bytes, at most 8"):
        values_text({"a": 100}, most=8, field="payload")


def nested(depth: int) -> dict[str, object]:
    inner: dict[str, object] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    "values", [{"a": float("nan")}, {"a": float("inf")}, {"a": {1, 2}}, {"a": b"bytes"}, nested(100_000)],
    ids=["nan", "infinity", "set", "bytes", "depth"],
)  # fmt: skip
def test_what_json_cannot_hold_is_refused(values: dict[str, object]):
    with pytest.raises(InvalidInputError, match=r"^payload: this cannot be written as JSON"):
        values_text(values, most=1000, field="payload")


def test_half_a_character_is_refused():
    with pytest.raises(InvalidInputError, match=r"^interview: this cannot be written"):
        document_text(lambda: "\ud800", field="interview")


def test_nothing_can_move_from_one_text_to_the_next():
    assert text_digest("ab", "c") != text_digest("a", "bc")
    assert text_digest("a", "b") == text_digest("a", "b")
