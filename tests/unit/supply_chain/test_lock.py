"""The lock names all dependencies of service and monitor, in the tested versions, with hashes."""

import re

import pytest
from packaging.requirements import Requirement

from supply_chain.lock import HEADER, LOCK_FILE
from supply_chain.packages import SERVING_EXTRAS, closure_of, parse_pins, pinned_packages

LOCK = LOCK_FILE.read_text(encoding="utf-8")


def test_the_lock_holds_the_pinned_versions_of_what_the_package_asks_for():
    pins = parse_pins(LOCK)
    assert pins == pinned_packages(SERVING_EXTRAS), "run: python -m supply_chain.lock"
    assert {"bentoml", "onnxruntime", "psycopg-binary", "starlette", "uvicorn"} <= pins.keys()
    assert not {"torch", "pytest", "lifelong"} & pins.keys()


def test_every_package_of_the_lock_has_hashes():
    content = LOCK.removeprefix(HEADER)
    assert content != LOCK
    lines = content.replace("\\\n", "").splitlines()
    assert len(lines) == len(parse_pins(LOCK))
    for line in lines:
        assert re.fullmatch(r"[a-z0-9.-]+==\S+(\s+--hash=sha256:[0-9a-f]{64})+", line), line[:80]


def test_pins_are_read_from_all_that_pip_reads():
    hashes = " \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n"
    text = f"# made\n-r other.txt\nOne_Two==1.0{hashes}three==2+cpu  # why\nfour>=1\n"
    assert parse_pins(text) == {"one-two": "1.0", "three": "2+cpu"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("a", {"a", "b"}),
        ("a[more]", {"a", "b", "c", "d"}),
        ("e", {"e"}),
    ],
)
def test_all_that_applies_in_the_container_is_needed(asked: str, expected: set[str]):
    installed = {
        "a": ["b>=1", "c; extra == 'more'"],
        "b": ["A"],
        "c": ["d; python_version >= '3.11'"],
        "d": [],
        "e": ["b; sys_platform == 'win32'"],
    }
    assert closure_of([Requirement(asked)], installed=installed) == expected
