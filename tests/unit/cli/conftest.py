"""The command line on a fresh installation."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from lifelong.cli import cli


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of an installation that nobody uses."""
    folder = tmp_path_factory.mktemp("installation") / "lifelong-data"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LIFELONG_DATA_DIRECTORY", str(folder))
        assert CliRunner().invoke(cli, ["init"], catch_exceptions=False).exit_code == 0
    return folder


@pytest.fixture
def installed(made_once: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Runs one command line on an installation of its own; errors of the product are raised as they are."""
    shutil.copytree(made_once, tmp_path / "lifelong-data")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, status: int = 0, given: str | None = None) -> str:
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False, input=given)
        assert result.exit_code == status, result.output
        return result.stdout

    return run
