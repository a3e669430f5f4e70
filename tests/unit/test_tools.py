"""Tests with a missing tool are skipped and counted; under CI they fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tools

PROBE = """
import pytest
from tests import tools

def test_there(): assert tools.program(tools.Tool("shell", "", ("not-there", "sh"))).endswith("sh")
@pytest.mark.parametrize("number", [1, 2])
def test_page(number): tools.program(tools.CHROMIUM)
def test_alerts(): tools.program(tools.PROMTOOL)
def test_logits(shared_logits): raise AssertionError("the folder is empty")
@pytest.mark.skip("another reason")
def test_other(): pass
"""


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """Tests in a folder of their own, with the fixtures and hooks of this project."""
    (tmp_path / "test_probe.py").write_text(PROBE)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_sessionfinish, shared_logits\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    return tmp_path


def run(probe: Path, ci: str) -> tuple[int, list[str]]:
    """Exit status and lines of a run on a machine that has none of the tools."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(probe)],
        cwd=Path(__file__).parents[2],
        env=os.environ
        | {
            "CI": ci,
            "PATH": str(probe / "bin"),
            "LIFELONG_SHARED_DATA": str(probe / "nowhere"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_outside_ci_the_last_line_counts_what_was_skipped_and_says_how_to_get_it(probe: Path) -> None:
    status, lines = run(probe, "")
    assert status == 0, lines
    assert "1 passed, 5 skipped" in lines[-2]
    assert lines[-1] == (
        "4 tests skipped for want of: 2 chromium (Debian: apt-get install chromium);"
        " 1 promtool (Debian: apt-get install prometheus);"
        " 1 real logits (set LIFELONG_SHARED_DATA to the folder that holds logits/*.npz)"
    )


def test_under_ci_it_is_a_failure(probe: Path) -> None:
    status, lines = run(probe, "true")
    assert status == 1
    assert "1 passed" in lines[-1]
    for word in ("3 failed", "1 skipped", "1 error"):
        assert word in lines[-1]
    assert "for want of promtool (Debian: apt-get install prometheus)" in "\n".join(lines)


def test_nothing_is_counted_where_nothing_was_missing() -> None:
    assert tools.count_line(["Skipped: another reason"]) is None
