"""`lifelong init` under a user without a name, and after an interruption at each of its steps."""

import os
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong_core.configuration.settings import Settings
from lifelong_core.store.lifecycle.group_keys import KeyFile

STEPS = (
    "lifelong.commands.operation.initialise:make_data_folder",
    "lifelong_core.store.schema.migration:make_private_file",
    "alembic.command:upgrade",
    "lifelong_core.store:Store.migrate",
    "lifelong.commands.operation.initialise:_forget_former_anchor",
    "lifelong_core.store.lifecycle.group_keys:load_group_key",
    "lifelong_core.store.lifecycle.group_keys:_record",
    "lifelong.commands.operation.initialise:_prepare_group_key",
    "lifelong.commands.operation.initialise:_restrict_files",
    "lifelong_core.store.access.tokens:write_audit",
    "lifelong.commands.operation.initialise:_show_first_token",
    "lifelong_core.store.access.tokens:Tokens.create",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "lifelong-data"


def init(killed_after: str | None = None) -> list[str]:
    """Run the command; return the tokens that it showed."""
    with pytest.MonkeyPatch.context() as patched:
        if killed_after is not None:
            step = pkgutil.resolve_name(killed_after)
            patched.setattr(killed_after.replace(":", "."), _killing(step))
        result = CliRunner().invoke(cli, ["init"])
    assert (result.exit_code == 0) == (killed_after is None)
    return [word for word in result.stdout.split() if word.startswith("ll_")]


def _killing(step: Callable[..., object]) -> Callable[..., None]:
    def run(*arguments: object, **options: object) -> None:
        step(*arguments, **options)
        raise SystemExit(9)

    return run


@pytest.mark.parametrize("step", STEPS)
def test_init_completes_what_an_interrupted_one_began(step, folder):
    folder.mkdir()
    (folder / "audit.anchor").write_text(f"7:{'0' * 64}\n")
    shown = [*init(killed_after=step), *init()]
    assert init() == []
    with open_store() as store:
        assert [token.name for token in store.tokens.list()] == ["first-admin"]
        assert store.tokens.verify(shown[-1])
        assert (
            KeyFile.load(Settings.load().resolved_group_key_file).digests == store.group_keys.known_digests()
        )
    assert not (folder / "audit.anchor").exists()


def test_a_user_without_a_name_is_an_actor_by_its_number(monkeypatch):
    def missing() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr("getpass.getuser", missing)
    assert len(init()) == 1
    with open_store() as store:
        assert {entry.actor for entry in store.audit.list(10)} == {f"cli:{os.getuid()}"}
