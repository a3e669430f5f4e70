"""A bill of materials is CycloneDX, holds licences, and lists exactly the packages of the lock."""

import json
import sys
import venv
from pathlib import Path

import pytest

from supply_chain.bill import differences, make_bill


def bill(**components: str) -> dict[str, object]:
    return {"components": [{"name": name, "version": version} for name, version in components.items()]}


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ({"one": "1", "Two": "2", "pip": "23"}, None),
        ({"one": "1"}, "two 2 is locked, but not in the bill"),
        ({"one": "1", "two": "3"}, "two 3 is in the bill, but the lock says 2"),
        ({"one": "1", "two": "2", "three": "3"}, "three 3 is in the bill, but not locked"),
    ],
)
def test_a_bill_is_compared_with_the_lock(components: dict[str, str], words: str | None):
    found = differences(bill(**components), {"one": "1", "two": "2"})
    assert [words in one for one in found if words] == [True] * len(found)
    assert bool(found) is (words is not None)


def test_a_bill_of_an_environment_is_valid_and_reproducible(tmp_path: Path):
    """An environment with one package of ours; CI makes the bill of the real one."""
    venv.create(tmp_path / "environment", with_pip=False)
    packages = next((tmp_path / "environment" / "lib").glob("python*")) / "site-packages"
    information = packages / "example_package-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: example-package\nVersion: 1.0\nLicense-Expression: MIT\n"
    )
    python = tmp_path / "environment" / "bin" / Path(sys.executable).name
    if not python.exists():
        python = tmp_path / "environment" / "bin" / "python"
    for name in ("one.json", "two.json"):
        make_bill(python, tmp_path / name)
    first = (tmp_path / "one.json").read_bytes()
    assert first == (tmp_path / "two.json").read_bytes()
    document = json.loads(first)
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == "lifelong"
    (component,) = document["components"]
    assert (component["name"], component["version"]) == ("example-package", "1.0")
    assert component["licenses"][0]["license"]["id"] == "MIT"
    assert differences(document, {"example-package": "1.0"}) == []
