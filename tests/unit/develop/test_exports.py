"""Names that `lifelong_core.develop` exports, and what their import costs."""

import subprocess
import sys

import pytest

import lifelong_core.develop as develop


@pytest.mark.parametrize("name", develop.__all__)
def test_every_exported_name_can_be_imported(name: str) -> None:
    assert getattr(develop, name).__name__ == name


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'distances'"):
        develop.distances  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import lifelong_core.develop", {"numpy", "pydantic", "torch"}),
        (
            "from lifelong_core.develop import KnowledgeBase, distance, rank_sources",
            {"torch", "timm", "sklearn", "opendp", "PIL"},
        ),
        (
            "from lifelong_core.develop.training import progress, recipe, result",
            {"torch", "timm", "sklearn", "onnxruntime"},
        ),
    ],
)
def test_importing_takes_only_what_is_needed(statement: str, absent: set[str]) -> None:
    code = f"import sys; {statement}; print(*sorted({absent} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split()
