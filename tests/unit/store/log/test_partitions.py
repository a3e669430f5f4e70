import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
import sqlalchemy as sa

from lifelong_core.store import LogEntry, Store
from lifelong_core.store.log import identifiers, partitions
from lifelong_core.store.log.writing import insert_entries
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import UnavailableError
from tests.unit.store.samples import entry, prediction, read_all

FUTURE = date(2031, 5, 1)
pytestmark = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)


@pytest.fixture
def store(database_url: str, artifacts_url: str) -> Iterator[Store]:
    """On a database of its own: partitions stay."""
    with Store.open(database_url, artifacts_url) as opened:
        yield opened


def partition_of(store: Store, day: date) -> str:
    """Where a prediction of that day is kept."""
    moment = datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=12)
    row = prediction(prediction_id=identifiers.first_id_at(moment))
    store.predictions.append([LogEntry((row,))])
    with store.database.read() as connection:
        query = sa.text("SELECT tableoid::regclass::text FROM predictions WHERE id = :id")
        return connection.execute(query, {"id": row.id}).scalar_one()


def test_today_and_the_days_ahead_have_partitions_after_migration(store: Store):
    # Midnight may lie between the migration, which makes a day more than these, and this line.
    today = datetime.now(UTC).date()
    for day in (today + timedelta(days=ahead) for ahead in range(7)):
        assert partition_of(store, day) == f"predictions_{day:%Y%m%d}"


def test_missing_days_are_made_once(store: Store):
    made = store.predictions.ensure_partitions(FUTURE)
    assert made == tuple(FUTURE + timedelta(days=ahead) for ahead in range(8))
    assert store.predictions.ensure_partitions(FUTURE) == ()
    assert store.predictions.ensure_partitions(FUTURE + timedelta(days=1)) == (FUTURE + timedelta(days=8),)
    assert partition_of(store, FUTURE) == "predictions_20310501"
    assert partition_of(store, FUTURE - timedelta(days=1)) == "predictions_default"


def test_a_day_that_began_in_the_default_partition_stays_there(store: Store):
    assert partition_of(store, FUTURE) == "predictions_default"
    made = store.predictions.ensure_partitions(FUTURE)
    assert FUTURE not in made
    assert len(made) == 7
    store.predictions.append([entry()])
    assert len(list(read_all(store))) == 2


def test_a_partition_has_the_keys_and_indexes_of_the_log(store: Store):
    store.predictions.ensure_partitions(FUTURE)
    with store.database.read() as connection:
        inspector = sa.inspect(connection)
        made, default = "predictions_20310501", "predictions_default"
        assert inspector.get_pk_constraint(made)["constrained_columns"] == ["logged_on", "id"]
        columns = [
            sorted(one["column_names"] for one in inspector.get_indexes(name)) for name in (made, default)
        ]
    assert columns[0] == columns[1] == [["commit_order", "id"], ["model_id", "environment", "id"]]


def test_processes_that_make_partitions_at_once_agree(store: Store):
    start = threading.Barrier(4)
    made: list[date] = []

    def work() -> None:
        start.wait()
        made.extend(store.predictions.ensure_partitions(FUTURE))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [FUTURE + timedelta(days=ahead) for ahead in range(8)]


def test_making_partitions_waits_for_no_writer_and_holds_none_up(store: Store):
    with store.database.write() as writer:
        insert_entries(writer, [entry()])
        assert len(store.predictions.ensure_partitions(FUTURE)) == 8
        insert_entries(writer, [entry()])
    assert len(list(read_all(store))) == 2


def test_making_partitions_gives_up_rather_than_hold_up_readers(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(partitions, "LOCK_TIMEOUT_MILLISECONDS", 50)
    with store.database.read() as reader:
        reader.execute(sa.select(tables.predictions.c.id))
        with pytest.raises(UnavailableError, match="lock timeout"):
            store.predictions.ensure_partitions(FUTURE)
        assert list(read_all(store)) == []
    assert len(store.predictions.ensure_partitions(FUTURE)) == 8
