"""A second host of an installation: `lifelong init` names what is missing and creates no key of its own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong_core.store import load_group_key
from lifelong_core.store.lifecycle.group_keys import KeyFile
from lifelong_core.values.errors import ConfigurationError
from tests import databases
from tests.unit.store.samples import CLASSES, COSTS

Host = Callable[..., Result]


@pytest.fixture(params=databases.KINDS)
def url(
    request: pytest.FixtureRequest, tmp_path: Path, postgresql_server: databases.PostgreSQL
) -> Iterator[str]:
    (tmp_path / "database").mkdir()
    with databases.database(request.param, tmp_path / "database", postgresql_server, migrated=False) as url:
        yield url


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str) -> Callable[[str], Host]:
    """A host by its name: a data directory of its own, one database, and one folder of artifacts by default."""
    monkeypatch.setenv("LIFELONG_DATABASE_URL", url)
    monkeypatch.chdir(tmp_path)

    def choose(name: str) -> Host:
        def run(*arguments: str, given: str | None = None, artifacts: str = "shared") -> Result:
            monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(tmp_path / name))
            monkeypatch.setenv("LIFELONG_ARTIFACTS_URL", artifacts and f"file://{tmp_path / artifacts}")
            return CliRunner().invoke(cli, arguments, catch_exceptions=False, input=given)

        return run

    return choose


@pytest.fixture
def first(on: Callable[[str], Host]) -> Host:
    host = on("first")
    made = host("init")
    assert (made.exit_code, made.stdout[:3]) == (0, "ll_")
    return host


def key_file(tmp_path: Path, host: str) -> Path:
    return tmp_path / host / "group.key"


def test_a_second_host_invents_no_key_and_says_how_to_get_the_right_one(
    first: Host, on: Callable[[str], Host], tmp_path: Path
) -> None:
    second = on("second")
    said = second("init")
    assert said.exit_code == 1
    assert "ll_" not in said.output, "no second admin token"
    for word in ("no key file", "lifelong init --group-key", "LIFELONG_GROUP_KEY_FILE", "not ready"):
        assert word in said.stderr
    assert not key_file(tmp_path, "second").exists()

    # The copy by its name, then, as over ssh, on standard input.
    assert second("init", "--group-key", str(key_file(tmp_path, "first"))).exit_code == 0
    assert key_file(tmp_path, "second").read_bytes() == key_file(tmp_path, "first").read_bytes()
    assert key_file(tmp_path, "second").stat().st_mode & 0o777 == 0o600
    third = on("third")
    said = third("init", "--group-key", "-", given=key_file(tmp_path, "first").read_text())
    assert said.exit_code == 0
    assert "Ready" in said.stderr
    assert "1 token)" in said.stdout
    for host in (second, third):
        again = host("init")
        assert (again.exit_code, "ll_" in again.output) == (0, False)
        assert "0 predictions" in host("erase", "--group", "patient-1", "--dry-run").stdout
        checks = {check["check"]: check for check in json.loads(host("doctor", "--json").stdout)["checks"]}
        assert checks["group key"]["status"] == "ok"


def test_a_host_with_another_key_is_told_so_by_every_command(
    first: Host, on: Callable[[str], Host], tmp_path: Path
) -> None:
    second = on("second")
    load_group_key(key_file(tmp_path, "second"), create=True)
    said = second("init")
    assert said.exit_code == 1
    assert "another key" in said.stderr
    for command in (("erase", "--group", "patient-1", "--yes"), ("rotate-group-key",)):
        with pytest.raises(ConfigurationError, match="another key"):
            second(*command)
    checks = {check["check"]: check for check in json.loads(second("doctor", "--json").stdout)["checks"]}
    assert checks["group key"]["status"] == "failure"

    own = KeyFile.load(key_file(tmp_path, "second"))
    wrong = second("init", "--group-key", "-", given="ab" * 32)
    assert wrong.exit_code == 1
    assert "standard input" in wrong.stderr
    assert KeyFile.load(key_file(tmp_path, "second")) == own
    repaired = second("init", "--group-key", "-", given=key_file(tmp_path, "first").read_text())
    assert repaired.exit_code == 0
    assert KeyFile.load(key_file(tmp_path, "second")).keys == KeyFile.load(key_file(tmp_path, "first")).keys
    aside = next(key_file(tmp_path, "second").parent.glob("group.key.*"))
    assert KeyFile.load(aside).keys == own.keys
    assert str(aside) in repaired.stderr
    # Neither host is worse off than before.
    for host in (first, second):
        assert host("erase", "--group", "patient-1", "--dry-run").exit_code == 0
        checks = {check["check"]: check for check in json.loads(host("doctor", "--json").stdout)["checks"]}
        assert checks["group key"]["status"] == "ok"


def test_a_rotation_reaches_the_database_and_other_hosts_are_told(
    first: Host, on: Callable[[str], Host], tmp_path: Path
) -> None:
    second = on("second")
    second("init", "--group-key", str(key_file(tmp_path, "first")))
    assert "holds 2 keys" in first("rotate-group-key").stdout
    with pytest.raises(ConfigurationError, match="is older than"):
        second("erase", "--group", "patient-1", "--dry-run")
    said = second("init")
    assert (said.exit_code, "is older" in said.stderr) == (1, True)
    assert second("init", "--group-key", str(key_file(tmp_path, "first"))).exit_code == 0
    assert second("erase", "--group", "patient-1", "--dry-run").exit_code == 0


def test_keys_that_are_lost_are_forgotten_after_a_question(first: Host, tmp_path: Path) -> None:
    assert "Nothing to do" in first("forget-group-keys").stdout
    key_file(tmp_path, "first").unlink()
    asked = first("forget-group-keys", given="n\n")
    assert (asked.exit_code, "lacks 1 of 1 key:" in asked.stdout) == (1, True)
    assert not key_file(tmp_path, "first").exists()
    assert "holds 1 key;" in first("forget-group-keys", "--yes").stdout
    assert first("init").exit_code == 0


def test_an_upgrade_confirms_the_key_of_an_older_version(first: Host, on: Callable[[str], Host]) -> None:
    with open_store() as store:
        known = store.group_keys.known_digests()
        with store.database.write() as connection:
            connection.exec_driver_sql("DELETE FROM group_keys")
    # A host without the file must not decide.
    refused = on("second")("init")
    assert (refused.exit_code, "Run `lifelong init` there first" in refused.stderr) == (1, True)
    assert "Nothing to do" in first("upgrade").stdout
    with open_store() as store:
        assert store.group_keys.known_digests() == known


def test_artifacts_that_this_host_cannot_reach_are_named(
    first: Host, on: Callable[[str], Host], tmp_path: Path
) -> None:
    with open_store() as store:
        store.tasks.add("lesions", CLASSES, COSTS, actor="test")
        from lifelong_core.values.preprocessing import Preprocessing

        store.models.add(
            "lesions", "net", kind="onnx", onnx=b"graph", preprocessing=Preprocessing(), actor="test"
        )
    second, key = on("second"), str(key_file(tmp_path, "first"))
    said = second("init", "--group-key", key, artifacts="second/artifacts")
    assert said.exit_code == 1
    assert "1 of 1 artifacts are not in" in said.stderr
    assert "the graph of net@1" in said.stderr
    assert "LIFELONG_ARTIFACTS_URL" in said.stderr
    assert second("init").exit_code == 0


def test_a_local_folder_of_artifacts_on_a_shared_server_is_noted(on: Callable[[str], Host], url: str) -> None:
    said = on("first")("init", artifacts="")
    assert said.exit_code == 0
    assert ("on this host alone" in said.stderr) == url.startswith("postgresql")
