"""`lifelong audit verify`: names the wrong entry, and compares the log with anchors."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong_core.store.access.audit_chain import Anchor, AnchorFile
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError

Run = Callable[..., str]
FILE = Path("lifelong-data/audit.anchor")


@pytest.fixture
def run(installed: Run) -> Run:
    """An installation with eight entries in its audit log."""
    with open_store() as store:
        for index in range(6):
            store.environments.add(f"clinic-{index}", actor="tests")
    return installed


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["audit", "verify", *arguments], catch_exceptions=False)


def newest() -> Anchor:
    with open_store() as store:
        anchor = store.audit.newest()
    assert anchor is not None
    return anchor


def execute(statement: sa.Executable) -> None:
    with open_store() as store, store.database.write() as connection:
        connection.execute(statement)


def test_a_sound_log(run: Run) -> None:
    said = run("audit", "verify")
    assert "as it was written: 8 entries." in said
    assert f"Newest entry: {newest()}" in said
    assert "There is no anchor" in said
    with open_store() as store:
        AnchorFile(FILE).advance(store.audit)
    said = run("audit", "verify", "--anchor", str(newest()))
    assert "8 entries, and the log holds 2 anchors." in said
    assert "There is no anchor" not in said


def test_each_fault_is_named(run: Run) -> None:
    del run
    execute(sa.update(tables.audit).where(tables.audit.c.id == 3).values(subject="elsewhere"))
    execute(sa.delete(tables.audit).where(tables.audit.c.id.in_([5, 6])))
    said = verify()
    assert said.exit_code == 1
    assert said.stdout.splitlines()[:2] == [
        "Entry 3 was changed, or never written by the product: its digest is another one.",
        "Entries 5 to 6 are missing.",
    ]
    document = json.loads(verify("--json").stdout)
    assert [(fault["kind"], fault["first"], fault["last"]) for fault in document["faults"]] == [
        ("changed", 3, 3),
        ("missing", 5, 6),
    ]


def test_a_tail_that_was_cut_off(run: Run) -> None:
    anchor = newest()
    execute(sa.delete(tables.audit).where(tables.audit.c.id > 6))
    assert "as it was written: 6 entries." in run("audit", "verify")
    said = verify("--anchor", str(anchor))
    assert said.exit_code == 1
    assert said.stdout.startswith("Entries 7 to 8 are missing at the end")
    FILE.write_text(f"{anchor}\n")
    assert verify().exit_code == 1
    with pytest.raises(InvalidInputError, match="SEQUENCE:DIGEST"):
        verify("--anchor", "8:what")


def test_a_new_database_in_the_place_of_another_one(run: Run) -> None:
    anchor = newest()
    FILE.write_text(f"{anchor}\n")
    run("init")
    assert FILE.exists()
    for file in FILE.parent.glob("lifelong.db*"):
        file.unlink()
    said = CliRunner().invoke(cli, ["init"], catch_exceptions=False).stderr
    assert f"The audit log of the former one ended with {anchor}." in said
    assert not FILE.exists()
    run("audit", "verify")
