"""The limits of JSON are counted on its bytes, as a parser would count them."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from lifelong_core.values.errors import PayloadTooLargeError
from lifelong_service.bodies import json_documents
from lifelong_service.bodies.json_documents import (
    MAXIMUM_CONTAINERS,
    MAXIMUM_NAMES,
    MAXIMUM_VALUES,
    check_structure,
    without_texts,
)

TEXTS = ("", '"', "\\", '\\"', "[{,:}]", "\\\\", "é\u0000", ": [", 'a\\"')


def some_value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(6 if depth else 4)
    if kind < 2:
        return chance.choice([1, -2.5, None, True])
    if kind < 4:
        return chance.choice(TEXTS)
    many = range(chance.randrange(4))
    if kind == 4:
        return [some_value(chance, depth - 1) for _ in many]
    return {f"{chance.choice(TEXTS)}{index}": some_value(chance, depth - 1) for index in many}


def counted(value: Any) -> tuple[int, int, int]:
    """Names, lists and objects, and commas of a parsed value."""
    if not isinstance(value, list | dict):
        return 0, 0, 0
    parts = [counted(part) for part in (value.values() if isinstance(value, dict) else value)]
    names = len(value) if isinstance(value, dict) else 0
    own = (names, 1, max(len(value) - 1, 0))
    return tuple(map(sum, zip(own, *parts, strict=True)))


@pytest.mark.parametrize("chunk", [1, 7, 1 << 18])
def test_counts_are_those_of_a_parser(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(json_documents, "_CHUNK", chunk)
    chance = random.Random(0)
    for _ in range(300):
        value = some_value(chance, 5)
        text = json.dumps(value, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 2]))
        bare = without_texts(text.encode())
        assert (bare.count(b":"), bare.count(b"[") + bare.count(b"{"), bare.count(b",")) == counted(value), (
            text
        )


@pytest.mark.parametrize(
    ("what", "limit", "text"),
    [
        ("names", MAXIMUM_NAMES, lambda n: b"{" + b",".join([b'"a":0'] * n) + b"}"),
        ("lists and objects", MAXIMUM_CONTAINERS, lambda n: b"[" + b",".join([b"{}"] * (n - 1)) + b"]"),
        ("values", MAXIMUM_VALUES, lambda n: b"[" + b",".join([b"0"] * n) + b"]"),
    ],
)
def test_just_below_and_above_each_limit(what: str, limit: int, text: Callable[[int], bytes]) -> None:
    check_structure(text(limit))
    with pytest.raises(PayloadTooLargeError, match=f"{limit + 1} {what}"):
        check_structure(text(limit + 1))


@pytest.mark.parametrize("character", [":", "[", "{", ","])
def test_characters_inside_texts_do_not_count(character: str) -> None:
    check_structure(json.dumps({"note": [character * (MAXIMUM_VALUES + 1), '"' + character]}).encode())


@pytest.mark.parametrize("text", [b"", b"]]]", b'"', b'{"a', b"\xff\x00", b"\\"])
def test_what_is_not_json_is_left_to_the_parser(text: bytes) -> None:
    check_structure(text)
