"""CONTRIBUTING.md names folders, files and functions that exist, and each walk visits a file once; packages list their
modules."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
WALKS = re.split(
    r"^One (?=\w+, |\w+ over )", TEXT.partition("## Four walks")[2].partition("\n## ")[0], flags=re.MULTILINE
)[1:]
SUBJECTS = ["prediction", "cycle", "interview", "retraining"]
FOLDERS = TEXT.partition("| folder |")[2].partition("\n\n")[0]


def steps(walk: str) -> list[tuple[str, str]]:
    """Path in the repository and name of each line of a walk."""
    base = re.search(r"relative to `([^`]+)`", walk)
    assert base is not None
    lines = re.findall(r"^\d+\. `([^`]+)` `(\w+)`: ", walk, re.MULTILINE)
    assert len(lines) == len(re.findall(r"^\d+\. ", walk, re.MULTILINE))
    return [
        (path if (REPOSITORY / path).is_file() else f"{base.group(1)}/{path}", name) for path, name in lines
    ]


def names_in(file: Path) -> set[str]:
    """Functions and classes that a module defines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, kinds)}


def test_there_are_four_walks() -> None:
    assert [walk.split()[0].rstrip(",") for walk in WALKS] == SUBJECTS


@pytest.mark.parametrize("walk", WALKS, ids=SUBJECTS)
def test_a_walk_names_what_exists_and_never_goes_back(walk: str) -> None:
    visited = steps(walk)
    missing = [
        f"{path} {name}"
        for path, name in visited
        if not (REPOSITORY / path).is_file() or name not in names_in(REPOSITORY / path)
    ]
    assert not missing
    paths = [path for path, _ in visited]
    assert len(paths) == len(set(paths)) >= 10


def test_the_folders_of_the_layout_exist_and_hold_all_packages() -> None:
    named: set[str] = set()
    for row in re.findall(r"^\| (`.*?`) \|", FOLDERS, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", row)
        named |= {first, *(other if "/" in other else f"{Path(first).parent}/{other}" for other in others)}
    assert [path for path in sorted(named) if not (REPOSITORY / path).exists()] == []
    roots = ("lifelong_core", "lifelong_core/deploy", "lifelong_core/design", "lifelong_core/store")
    roots += ("service/lifelong_service", "monitor/lifelong_monitor")
    packages = {
        str(file.parent.relative_to(REPOSITORY))
        for root in roots
        for file in (REPOSITORY / root).glob("*/__init__.py")
    }
    assert packages - named == set()


def test_the_list_of_a_package_names_its_modules() -> None:
    wrong: dict[str, set[str]] = {}
    for root in ("lifelong_core", "lifelong", "service/lifelong_service", "monitor/lifelong_monitor"):
        for file in (REPOSITORY / root).rglob("__init__.py"):
            text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            if not (heads := re.findall(r"^- ((?:`\w+`(?:, | and )?)+)", text, re.MULTILINE)):
                continue
            listed = set(re.findall(r"`(\w+)`", " ".join(heads)))
            modules = {path.stem for path in file.parent.glob("*.py")} - {"__init__", "__main__"}
            modules |= {path.parent.name for path in file.parent.glob("*/__init__.py")}
            named = set(re.findall(r"`(\w+)`", text))
            if difference := (listed - modules) | (modules - named):
                wrong[str(file.relative_to(REPOSITORY))] = difference
    assert wrong == {}
