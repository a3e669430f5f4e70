"""Files of an installation belong to its user alone; `lifelong init` closes what an older version left open."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lifelong.cli import cli

DATA = Path("lifelong-data")


@pytest.fixture(params=[0o022, 0o000], ids=["022", "000"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_paths(folder: Path = DATA) -> list[tuple[str, str]]:
    return [(str(path), f"{mode(path):o}") for path in (folder, *folder.rglob("*")) if mode(path) & 0o077]


def open_all() -> None:
    for path in (DATA, *DATA.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def of_file_modes() -> list[dict[str, str]]:
    result = CliRunner().invoke(cli, ["doctor", "--json"], catch_exceptions=False)
    (check,) = [one for one in json.loads(result.stdout)["checks"] if one["check"] == "file modes"]
    return check["findings"]


def test_init_makes_files_for_their_owner_alone(umask: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "--mode", "shadow"], catch_exceptions=False).exit_code == 0
    assert {path.name for path in DATA.iterdir()} >= {"lifelong.db", "group.key"}
    assert open_paths() == []
    assert mode(Path("lifelong.toml")) == 0o600


def test_init_takes_the_rights_of_others_away(installed: Callable[..., str]):
    (DATA / "artifacts" / "ab").mkdir(parents=True)
    (DATA / "artifacts" / "ab" / ("ab" * 32)).touch()
    (DATA / "group.key.01234567").touch()
    open_all()
    installed("init")
    assert open_paths() == []
    assert all("only their owner" in one["message"] for one in of_file_modes())


def test_doctor_names_what_others_may_use(installed: Callable[..., str]):
    open_all()
    (found,) = of_file_modes()
    assert str(DATA) in found["message"]
    assert "and 3 more files" in found["message"]  # the open database; the group key has a check of its own
    assert "lifelong init" in found["hint"]


def test_a_folder_that_holds_other_things_keeps_its_mode(installed: Callable[..., str]):
    other = DATA / "notes.txt"
    other.touch()
    open_all()
    installed("init")
    assert {name for name, _ in open_paths()} == {str(DATA), str(other)}
    assert all("only their owner" in one["message"] for one in of_file_modes())
    DATA.chmod(0o775)
    assert [one["hint"] for one in of_file_modes()] == [f"chmod go-w {DATA.resolve()}"]


def test_a_link_leads_nobody_outside(installed: Callable[..., str], tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o755)
    (DATA / "artifacts").symlink_to(outside)
    installed("init")
    assert mode(outside) == 0o755


def test_doctor_warns_of_a_password_that_others_may_read(
    installed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    url = f"sqlite:///{DATA.resolve()}/lifelong.db"
    monkeypatch.setenv("LIFELONG_DATABASE_URL", url)
    file = Path("lifelong.toml")
    file.write_text('database_url = "postgresql://me:secret@host/database"\n')
    file.chmod(0o644)
    (found,) = of_file_modes()
    assert "password" in found["message"]
    assert "secret" not in str(found)
    file.write_text('database_url = "postgresql://me@host/database"\n')
    assert all("only their owner" in one["message"] for one in of_file_modes())
