"""The log as a Parquet file, read back by pyarrow."""

import csv
import gzip
import json
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from lifelong import export
from lifelong.commands.common import open_store
from lifelong_core.deploy.head import ABSTAIN
from lifelong_core.store import LogEntry, NewLabel, Prediction, Store, logged_at, register_calibration
from lifelong_core.store.lifecycle.exports import Exports
from lifelong_core.store.log import identifiers
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError, NotFoundError
from tests.unit.store.samples import CLASSES, COSTS, calibration

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
ARGUMENTS = ("export", "clinic", "--output", "log.parquet")


@pytest.fixture
def store(installed: Callable[..., str]) -> Iterator[Store]:
    """With two models of one task and an environment."""
    with open_store() as opened:
        opened.tasks.add("lesions", CLASSES, COSTS, actor="tests")
        for name in ("net", "other"):
            opened.models.add("lesions", name, kind="external", actor="tests")
        register_calibration(opened, "net", calibration(), actor="tests")
        opened.environments.ensure("clinic", limit=9)
        yield opened


def predictions(
    number: int, *, model: int = 1, environment: str = "clinic", start: datetime = NOON
) -> list[Prediction]:
    """One each minute; every third has a group."""
    return [
        Prediction(
            UUID(int=identifiers.first_id_at(start + timedelta(minutes=index)).int + model),
            model,
            environment,
            3,
            index % 4,
            np.arange(index, index + 3, dtype=np.float32) / 7,
            bytes([index]) * 16 if index % 3 == 0 else None,
        )
        for index in range(number)
    ]


def log(store: Store, rows: list[Prediction]) -> None:
    store.predictions.append([LogEntry((row,)) for row in rows])


def rows_of(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


@pytest.mark.parametrize("name", ["log.csv", "LOG.CSV.gz"])
def test_a_csv_file_has_a_column_for_each_class(
    store: Store,
    installed: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
):
    monkeypatch.setattr(export, "_LARGEST_PAGE", 7)
    logged = [*predictions(24), replace(predictions(25)[-1], logits=np.zeros(2, dtype=np.float32))]
    log(store, logged)
    store.labels.record([NewLabel(row.id, 2, "pathology") for row in logged[:24:2]])
    assert installed(*ARGUMENTS[:-1], name) == f"Wrote 25 predictions to {name}.\n"
    file = tmp_path / name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = file.read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    read = list(csv.DictReader(text.splitlines()))
    assert list(read[0]) == [
        *("id", "logged_at", "model", "environment", "head_version", "decision", "decision_name"),
        *(f"logit_{one}" for one in CLASSES),
        *("group", "label", "label_recorded_at", "label_propensity", "label_history"),
    ]
    assert len(read) == 25
    for index, (row, prediction) in enumerate(zip(read, logged, strict=True)):
        assert row["id"] == str(prediction.id)
        assert datetime.fromisoformat(row["logged_at"]) == logged_at(prediction.id)
        assert (row["model"], row["head_version"], row["decision"]) == ("net@1", "3", str(index % 4))
        assert row["decision_name"] == (*CLASSES, ABSTAIN)[index % 4]
        values = [row[f"logit_{one}"] for one in CLASSES]
        expected = [""] * 3 if index == 24 else prediction.logits.tolist()
        assert [value and np.float32(value) for value in values] == expected
        assert row["group"] == ("" if prediction.group_hash is None else prediction.group_hash.hex())
        assert row["label"] == ("2" if index % 2 == 0 and index < 24 else "")


def test_a_name_of_no_known_format_is_refused(
    store: Store, installed: Callable[..., str], tmp_path: Path
) -> None:
    log(store, predictions(1))
    for name in ("log.xlsx", "log", "csv", "log.parquet.gz", "log.csv.zip"):
        with pytest.raises(InvalidInputError, match=r"\.parquet, \.csv or \.csv\.gz") as refused:
            installed(*ARGUMENTS[:-1], name)
        assert refused.value.field == "--output"
        assert not (tmp_path / name).exists()


def test_models_with_other_class_names_need_a_csv_file_each(store: Store, installed: Callable[..., str]):
    store.tasks.add("renamed", [*CLASSES[:2], "else"], COSTS, actor="tests")
    renamed = store.models.add("renamed", "third", kind="external", actor="tests")
    log(store, [*predictions(2), *predictions(2, model=renamed.id)])
    with pytest.raises(InvalidInputError, match="other class names") as refused:
        installed(*ARGUMENTS[:-1], "log.csv")
    assert refused.value.field == "--model"
    assert "Wrote 2 " in installed(*ARGUMENTS[:-1], "log.csv", "--model", "third")
    assert "Wrote 4 " in installed(*ARGUMENTS)


def test_everything_of_an_environment_is_read_back(
    store: Store, installed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(export, "_LARGEST_PAGE", 7)
    logged = predictions(24)
    log(store, [*logged, *predictions(5, model=2), *predictions(5, environment="default", model=3)])
    store.labels.record([NewLabel(row.id, 2, "pathology", 0.125) for row in logged[::2]])
    assert installed(*ARGUMENTS) == "Wrote 29 predictions to log.parquet.\n"
    file = tmp_path / "log.parquet"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    read = rows_of(file)
    assert [row["model"] for row in read] == ["net@1"] * 24 + ["other@1"] * 5
    for row, prediction in zip(read, logged, strict=False):
        index = logged.index(prediction)
        recorded_at, history = row.pop("label_recorded_at"), row.pop("label_history")
        assert (recorded_at is None) == (history is None) == (index % 2 == 1)
        if history is not None:
            (revision,) = json.loads(history)
            assert (revision["name"], revision["source"]) == (CLASSES[2], "pathology")
            assert datetime.fromisoformat(revision["recorded_at"]) == recorded_at
        assert row == {
            "id": str(prediction.id),
            "logged_at": logged_at(prediction.id),
            "model": "net@1",
            "environment": "clinic",
            "head_version": 3,
            "decision": index % 4,
            "decision_name": (*CLASSES, ABSTAIN)[index % 4],
            "logits": prediction.logits.tolist(),
            "group": None if prediction.group_hash is None else prediction.group_hash.hex(),
            "label": 2 if index % 2 == 0 else None,
            "label_propensity": 0.125 if index % 2 == 0 else None,
        }
    assert pq.ParquetFile(file).num_row_groups == 5
    schema = pq.read_schema(file)
    assert str(schema.field("logits").type) == "fixed_size_list<element: float>[3]"
    assert str(schema.field("logged_at").type) == "timestamp[ms, tz=UTC]"
    described = json.loads(schema.metadata[b"lifelong"])
    assert described["environment"] == "clinic"
    assert described["models"]["net@1"] == {"task": "lesions", "class_names": list(CLASSES)}
    assert described["schema_version"] == 2
    assert described["product_version"]


def test_a_model_and_a_span_of_time(store: Store, installed: Callable[..., str], tmp_path: Path):
    log(store, [*predictions(30), *predictions(30, model=2)])
    for arguments, expected in (
        (("--model", "net"), 30),
        (("--since", "2026-05-20T12:10"), 40),
        (("--since", "2026-05-20T12:10", "--until", "2026-05-20T14:20+02:00", "--model", "other@1"), 10),
        (("--until", "2026-05-20"), 0),
        (("--since", "2026-05-20"), 60),
    ):
        installed(*ARGUMENTS, "--replace", *arguments)
        assert len(rows_of(tmp_path / "log.parquet")) == expected
    with pytest.raises(AssertionError, match="is no time"):
        installed(*ARGUMENTS, "--since", "yesterday")


def test_what_is_logged_meanwhile_is_left_out(
    store: Store, installed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log(store, predictions(10))
    log_position = Exports.log_position

    def log_position_and_more(exports: Exports) -> int:
        found = log_position(exports)
        log(store, predictions(10, start=NOON + timedelta(days=1)))
        return found

    monkeypatch.setattr(Exports, "log_position", log_position_and_more)
    assert "Wrote 10 predictions" in installed(*ARGUMENTS)


def test_logits_that_the_model_did_not_give_are_null(
    store: Store, installed: Callable[..., str], tmp_path: Path
):
    logged = predictions(3)
    log(store, logged)
    with store.database.write() as connection:
        damaged = sa.update(tables.predictions).where(tables.predictions.c.id == logged[1].id)
        connection.execute(damaged.values(logits=b"four"))
    installed(*ARGUMENTS)
    assert [row["logits"] for row in rows_of(tmp_path / "log.parquet")] == [
        logged[0].logits.tolist(),
        None,
        logged[2].logits.tolist(),
    ]


def test_models_of_other_classes_are_exported_one_at_a_time(store: Store, installed: Callable[..., str]):
    store.tasks.add("pair", ["a", "b"], [[0, 1], [1, 0]], actor="tests")
    pair = store.models.add("pair", "pair", kind="external", actor="tests")
    row = predictions(1, model=pair.id)[0]
    log(store, [*predictions(3), Prediction(row.id, pair.id, "clinic", 1, 0, np.zeros(2, np.float32))])
    with pytest.raises(InvalidInputError, match="2 and 3 classes") as refused:
        installed(*ARGUMENTS)
    assert refused.value.field == "--model"
    assert "Wrote 1 predictions" in installed(*ARGUMENTS, "--model", "pair")


def test_a_file_is_replaced_only_on_demand_and_only_as_a_whole(
    store: Store, installed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log(store, predictions(3))
    installed(*ARGUMENTS)
    with pytest.raises(ConflictError, match="--replace"):
        installed(*ARGUMENTS)
    before = sorted(tmp_path.iterdir())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(ConfigurationError, match="No space left"):
            installed(*ARGUMENTS, "--replace")
    assert sorted(tmp_path.iterdir()) == before
    assert len(rows_of(tmp_path / "log.parquet")) == 3
    installed(*ARGUMENTS, "--replace", "--model", "other")
    assert rows_of(tmp_path / "log.parquet") == []


def test_a_mistake_leaves_no_file(store: Store, installed: Callable[..., str], tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    for arguments, error in (
        (("nowhere",), NotFoundError),
        (("default",), NotFoundError),
        (("clinic", "--model", "nowhere"), NotFoundError),
        (("clinic", "--output", "no/folder.parquet"), ConfigurationError),
    ):
        with pytest.raises(error):
            installed("export", *ARGUMENTS[2:], *arguments)
        assert sorted(tmp_path.iterdir()) == before


def test_names_in_a_csv_file_are_no_formulas_and_exact_in_parquet(
    installed: Callable[..., str], tmp_path: Path
) -> None:
    classes = ("=HYPERLINK(1)", "-1.5", "@sum")
    with open_store() as store:
        store.tasks.add("lesions", classes, COSTS, actor="tests")
        store.models.add("lesions", "net", kind="external", actor="tests")
        store.environments.ensure("clinic", limit=9)
        log(store, predictions(4))
    read: dict[str, list[str]] = {}
    for name in ("log.csv", "log.parquet"):
        installed(*ARGUMENTS[:-1], name)
    read["csv"] = [
        row["decision_name"] for row in csv.DictReader((tmp_path / "log.csv").read_text().splitlines())
    ]
    read["parquet"] = [row["decision_name"] for row in rows_of(tmp_path / "log.parquet")]
    assert read == {
        "csv": ["'=HYPERLINK(1)", "-1.5", "'@sum", ABSTAIN],
        "parquet": [*classes, ABSTAIN],
    }
