"""Erasing a group and rotating the key, as a person types it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lifelong.commands.common import open_store
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import (
    LogEntry,
    NewLabel,
    Prediction,
    RequestKey,
    group_hash,
    load_group_key,
    new_prediction_id,
)
from lifelong_core.store.lifecycle import erasure
from lifelong_core.store.schema import version
from lifelong_core.values.errors import ConfigurationError, SchemaError
from tests import databases


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "SETTLING_SECONDS", 0)


def log(group: str, request: str) -> None:
    """One labelled prediction under the key that is current now."""
    key = load_group_key(Settings.load().resolved_group_key_file, create=False)
    row = Prediction(new_prediction_id(), 1, "default", 1, 0, np.zeros(2, np.float32), group_hash(key, group))
    with open_store() as store:
        store.predictions.append([LogEntry((row,), RequestKey(1, "default", request), b"body")])
        store.labels.record([NewLabel(row.id, 1)])


def test_a_group_is_erased_by_all_keys_that_there_ever_were(installed: Callable[..., str]):
    log("patient-1", "a")
    assert "holds 2 keys" in installed("rotate-group-key")
    log("patient-1", "b")
    log("patient-2", "c")
    counted = "2 predictions, 2 labels with 2 revisions and 2 request ids"
    assert installed("erase", "--group", "patient-1", "--dry-run") == f"There are {counted} of this group.\n"
    assert installed("erase", "--group", "patient-1", "--yes") == f"Erased {counted}.\n"
    assert "There are 0 predictions" in installed("erase", "--group", "patient-1", "--dry-run")
    assert "There are 1 predictions" in installed("erase", "--group", "patient-2", "--dry-run")


def test_a_group_is_erased_with_and_without_spaces_around_it(installed: Callable[..., str]):
    log("4711", "a")
    log("4711 ", "b")  # as an older version logged it
    assert "There are 1 predictions" in installed("erase", "--group", "4711", "--dry-run")
    assert "There are 2 predictions" in installed("erase", "--group", "4711 ", "--dry-run")


def test_nothing_is_erased_without_a_yes(installed: Callable[..., str]):
    log("patient-1", "a")
    assert "Erase them for good?" in installed("erase", "--group", "patient-1", given="n\n", status=1)
    assert "There are 1 predictions" in installed("erase", "--group", "-", "--dry-run", given="patient-1\n")
    assert "Erased 1 predictions" in installed("erase", "--group", "patient-1", given="y\n")
    with open_store() as store:
        assert "patient" not in str(store.audit.list())


def test_without_its_key_no_group_is_found(installed: Callable[..., str], tmp_path: Path):
    (tmp_path / "lifelong-data" / "group.key").unlink()
    for arguments in (("erase", "--group", "patient-1", "--yes"), ("rotate-group-key",)):
        with pytest.raises(ConfigurationError, match="backup"):
            installed(*arguments)


def test_an_upgrade_says_what_it_did(
    installed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    present = version.revisions()[-1]
    assert installed("upgrade") == f"Nothing to do: the database has the schema of this version, {present}.\n"
    monkeypatch.setattr(version, "SCRIPTS", databases.next_version(tmp_path))
    assert (
        installed("upgrade") == f"Upgraded the database from schema {present} to {databases.NEXT_REVISION}.\n"
    )
    file = tmp_path / "lifelong-data" / "lifelong.db"
    databases.set_revision(f"sqlite:///{file}", "0023")
    for command in (("upgrade",), ("init",), ("models", "list")):
        with pytest.raises(
            SchemaError, match=f"0023; this version expects {databases.NEXT_REVISION}.*export"
        ):
            installed(*command)
    file.unlink()
    assert (
        installed("upgrade") == f"The database was empty; it has the schema {databases.NEXT_REVISION} now.\n"
    )
