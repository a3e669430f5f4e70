import tempfile
from pathlib import Path

import pytest

from lifelong_core.runtime.files import ensure_temporary_folder
from lifelong_core.values.errors import ConfigurationError


@pytest.fixture(autouse=True)
def read_only_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No usual temporary folder exists."""

    def candidates() -> list[str]:
        given = tempfile._os.getenv("TMPDIR")  # type: ignore[attr-defined]
        return ["/proc", *([given] if given else [])]

    monkeypatch.setenv("TMPDIR", "/proc")
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", candidates)


def test_the_data_directory_holds_temporary_files_where_nothing_else_can(tmp_path: Path) -> None:
    ensure_temporary_folder(tmp_path / "data")
    with tempfile.TemporaryDirectory() as folder:
        assert Path(folder).parent == tmp_path / "data" / "tmp"
    assert (tmp_path / "data" / "tmp").stat().st_mode & 0o077 == 0


def test_without_any_folder_the_error_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="TMPDIR"):
        ensure_temporary_folder(tmp_path / "file")
