"""All rows of a group are deleted; everything else stays."""

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from lifelong_core.deploy import quantifier
from lifelong_core.store import LogEntry, NewLabel, RequestKey, Store, group_hash
from lifelong_core.store.lifecycle import erasure as module
from lifelong_core.store.lifecycle.erasure import Erasure, ErasureOutcome
from lifelong_core.store.log import identifiers, label_writing
from lifelong_core.store.log.writing import insert_entries
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError, UnavailableError
from tests.databases import sqlite_only
from tests.unit.store.samples import add_serving_model, calibration, ids_of, prediction, read_all

OLD_KEY, KEY = b"o" * 32, b"k" * 32
PATIENT, OTHER = group_hash(KEY, "patient"), group_hash(KEY, "other")
MIDNIGHT = datetime(2026, 5, 20, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLING_SECONDS", 0)


def entry(
    *groups: bytes | None, request: str | None = None, ids: tuple[UUID, ...] = (), model: int = 1
) -> LogEntry:
    """One prediction for each group."""
    rows = tuple(
        prediction(model, "site-a", group_hash=group, prediction_id=ids[index] if ids else None)
        for index, group in enumerate(groups)
    )
    return LogEntry(rows, None if request is None else RequestKey(model, "site-a", request), b"body")


def counts(store: Store) -> tuple[int, int, int]:
    with store.database.read() as connection:
        return tuple(  # type: ignore[return-value]
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (tables.predictions, tables.labels, tables.requests)
        )


def revisions(store: Store) -> int:
    with store.database.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(tables.label_revisions)).scalar_one()


def fill(store: Store, model: int = 1) -> list[LogEntry]:
    """Three predictions of the patient, by two keys, with two requests and two labels; twice as much of others."""
    entries = [
        entry(PATIENT, PATIENT, request="both", model=model),
        entry(group_hash(OLD_KEY, "patient"), request="old key", model=model),
        entry(OTHER, request="other", model=model),
        *(entry(None, model=model) for _ in range(3)),
    ]
    store.predictions.append(entries)
    store.labels.record([NewLabel(row.predictions[0].id, 1) for row in entries[:4]])
    store.labels.record([NewLabel(row.predictions[0].id, 0) for row in (entries[0], entries[2])])
    return entries


HASHES = [PATIENT, group_hash(OLD_KEY, "patient")]


def test_a_group_goes_with_labels_and_request_ids(store: Store):
    entries = fill(store)
    assert store.erasure.count(HASHES) == ErasureOutcome(3, 2, 2, 3)
    assert counts(store) == (7, 4, 3)
    assert revisions(store) == 6
    assert store.erasure.erase(HASHES, actor="tests") == ErasureOutcome(3, 2, 2, 3)
    assert counts(store) == (4, 2, 1)
    assert revisions(store) == 3
    assert sorted(read_all(store)) == sorted(ids_of(entries[2:]))
    assert store.predictions.request(RequestKey(1, "site-a", "both")) is None
    assert store.predictions.request(RequestKey(1, "site-a", "other")) is not None
    assert store.erasure.count(HASHES) == store.erasure.erase(HASHES, actor="tests") == ErasureOutcome()


def test_more_rows_than_one_batch_go(store: Store):
    store.predictions.append([entry(PATIENT, request=f"{number}") for number in range(700)])
    assert store.erasure.erase(HASHES, actor="tests") == ErasureOutcome(700, 0, 700)
    assert counts(store) == (0, 0, 0)


def test_a_request_goes_whichever_of_its_predictions_was_of_the_group(store: Store):
    before, after = (
        identifiers.first_id_at(MIDNIGHT + timedelta(seconds=seconds)) for seconds in (-0.001, 0)
    )
    store.predictions.append(
        [
            entry(OTHER, PATIENT, request="mixed"),
            entry(None, PATIENT, request="over midnight", ids=(before, after)),
            entry(OTHER, OTHER, request="others"),
        ]
    )
    assert store.erasure.erase([PATIENT], actor="tests") == ErasureOutcome(2, 0, 2)
    assert counts(store) == (4, 0, 1)


@sqlite_only
def test_the_audit_log_names_who_and_how_much_but_not_whom(store: Store):
    fill(store)
    store.erasure.erase(HASHES, actor="officer")
    done, begun = store.audit.list()[:2]
    assert [(one.actor, one.action, one.subject) for one in (begun, done)] == [
        ("officer", "groups.erase", "a group"),
        ("officer", "groups.erased", "a group"),
    ]
    assert begun.details == {"hashes": 2}
    assert done.details == {"hashes": 2, "predictions": 3, "labels": 2, "requests": 2, "label_revisions": 3}


def test_what_was_made_before_never_comes_back_from_a_spool_and_what_is_made_later_is_logged(store: Store):
    spooled = [entry(PATIENT, request="spooled"), entry(OTHER)]
    store.erasure.erase(HASHES, actor="tests")
    assert store.predictions.deliver(spooled).erased == 1
    assert list(read_all(store)) == ids_of(spooled[1:])
    later = entry(PATIENT)
    assert store.predictions.deliver([later]).written == 1
    store.erasure.erase(HASHES, actor="tests")
    assert store.predictions.deliver([later]).erased == 1


@sqlite_only
def test_a_request_that_is_delivered_in_part_loses_its_key(store: Store):
    """As in an erasure: a retry would get the decisions of some rows for those of others."""
    mixed = entry(PATIENT, OTHER, OTHER, request="mixed")
    store.erasure.erase([PATIENT], actor="tests")
    delivered = store.predictions.deliver([mixed, entry(OTHER, request="whole")])
    assert (delivered.written, delivered.erased) == (3, 1)
    assert counts(store) == (3, 0, 1)
    assert store.predictions.request(RequestKey(1, "site-a", "mixed")) is None


def test_a_label_that_is_told_meanwhile_goes_too(store: Store, monkeypatch: pytest.MonkeyPatch):
    labelled = entry(PATIENT)
    store.predictions.append([labelled])
    read, outcomes = module._requests_of, list[tuple[str, ...]]()

    def slow(*arguments: Any) -> Any:
        """Somebody labels after what is to be deleted was read."""
        found = read(*arguments)
        outcomes.append(store.labels.record([NewLabel(ids_of([labelled])[0], 1)]))
        return found

    monkeypatch.setattr(module, "_requests_of", slow)
    assert store.erasure.erase([PATIENT], actor="tests").labels == 1
    assert outcomes == [("stored",)]
    assert counts(store) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)  # on SQLite one writes at a time anyway
def test_a_label_that_is_being_told_is_waited_for(store: Store):
    labelled = entry(PATIENT)
    store.predictions.append([labelled])
    told = NewLabel(ids_of([labelled])[0], 1)
    eraser = threading.Thread(target=lambda: store.erasure.erase([PATIENT], actor="tests"))
    with store.database.write() as connection:
        assert label_writing.lock_predictions(connection, [told.prediction_id])
        eraser.start()
        eraser.join(0.5)
        assert eraser.is_alive()
        row = {"logged_on": identifiers.logged_on(told.prediction_id), "prediction_id": told.prediction_id}
        values = {
            "model_id": 1,
            "environment": "site-a",
            "label": 1,
            "source": "ann",
            "recorded_at": MIDNIGHT,
        }
        connection.execute(sa.insert(tables.labels).values(**row, **values))
    eraser.join(30)
    assert counts(store) == (0, 0, 0)


def test_summaries_are_made_anew_without_the_group(store: Store):
    model, _ = add_serving_model(store)
    store.environments.ensure("site-a", limit=9)
    fitted = quantifier("CC").fit(calibration())
    fill(store, model.id)

    def fold() -> list[int]:
        while not store.summaries.fold(model, "site-a", fitted, classes=3).is_done:
            pass
        assert store.summaries.check(model, "site-a", fitted) == []
        since, until = datetime(2020, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)
        return [
            hour.samples for hour in store.summaries.window(model.id, "site-a", fitted.digest, since, until)
        ]

    assert sum(fold()) == 7
    store.erasure.erase(HASHES, actor="tests")
    assert store.summaries.check(model, "site-a", fitted) == []
    assert sum(fold()) == 4


def test_what_is_logged_while_the_group_is_being_erased_goes_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    """A micro-batch on its way: made before, written after the log was read."""
    entries = fill(store)
    on_its_way = entry(PATIENT)
    waits: list[float] = []

    def pause(seconds: float) -> bool:
        if not waits:
            store.predictions.append([on_its_way])
        waits.append(seconds)
        return False

    monkeypatch.setattr(module, "never_stop", pause)
    assert store.erasure.erase(HASHES, actor="tests").predictions == 4
    assert sorted(read_all(store)) == sorted(ids_of(entries[2:]))


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_transaction_that_was_running_before_is_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch):
    written, finish = threading.Event(), threading.Event()

    def hang() -> None:
        with store.database.write() as connection:
            insert_entries(connection, [entry(PATIENT)])
            written.set()
            finish.wait(30)

    thread = threading.Thread(target=hang)
    thread.start()
    written.wait(30)
    monkeypatch.setattr(module, "_ATTEMPTS", 2)
    with pytest.raises(UnavailableError, match="still running"):
        store.erasure.erase(HASHES, actor="tests")
    monkeypatch.setattr(module, "_ATTEMPTS", 100)
    monkeypatch.setattr(module, "never_stop", lambda _: finish.set() or thread.join())
    assert store.erasure.erase(HASHES, actor="tests") == ErasureOutcome(predictions=1)


@sqlite_only
@pytest.mark.parametrize("hashes", [[], [b"too short"], [PATIENT, PATIENT + b"x"]])
def test_only_hashes_are_taken(store: Store, hashes: list[bytes]):
    for call in (store.erasure.count, lambda given: store.erasure.erase(given, actor="tests")):
        with pytest.raises(InvalidInputError, match="16 bytes"):
            call(hashes)


@sqlite_only
@pytest.mark.parametrize("is_overwritten", [True, False])
def test_nothing_is_left_in_the_file(
    store: Store, tmp_path: Path, is_overwritten: bool, monkeypatch: pytest.MonkeyPatch
):
    """Positive control: SQLite itself leaves what it deletes."""

    @contextlib.contextmanager
    def nothing(*_: object) -> Iterator[None]:
        yield

    if not is_overwritten:
        monkeypatch.setattr(Erasure, "_overwriting", nothing)
    engine = store.database.engine
    sa.event.listen(engine, "connect", lambda driver, _: driver.execute("PRAGMA secure_delete = OFF").close())
    engine.dispose()  # later connections have it
    entries = fill(store)
    identity = entries[0].predictions[0].id.bytes

    def holds(content: bytes) -> bool:
        return any(content in file.read_bytes() for file in tmp_path.glob("lifelong.db*"))

    for content in (PATIENT, identity, b"both"):
        assert holds(content)
    store.erasure.erase([PATIENT], actor="tests")
    assert holds(OTHER)
    # The hash itself stays, as the one that must not come back.
    assert [holds(identity), holds(b"both")] == [not is_overwritten] * 2
