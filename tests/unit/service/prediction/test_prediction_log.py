"""Each answered prediction is in the database or in the spool, and finally once in the database."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

import numpy as np
import psycopg
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import LogEntry, Prediction, RequestKey, Store, new_prediction_id
from lifelong_core.store.engine import database
from lifelong_core.store.log.writing import insert_missing_entries
from lifelong_core.store.spool.spool import Spool
from lifelong_core.values.errors import ConflictError, InvalidInputError, UnavailableError
from lifelong_service.prediction.prediction_log import PredictionLog
from tests import databases, tools
from tests.faults.network import Network
from tests.faults.postgresql import MortalPostgreSQL
from tests.unit.service.outages import killed
from tests.unit.service.waiting import LONG, eventually

PATIENCE = 0.3


def entry(environment: str = "default", request_id: str | None = None, rows: int = 1) -> LogEntry:
    logits = np.zeros(3, dtype=np.float32)
    predictions = tuple(Prediction(new_prediction_id(), 1, environment, 1, 0, logits) for _ in range(rows))
    key = None if request_id is None else RequestKey(1, environment, request_id)
    return LogEntry(predictions, key, b"digest")


@dataclass
class Bench:
    """A prediction log on a real database that can be taken away."""

    settings: Settings
    store: Store
    log: PredictionLog
    away: Callable[[], AbstractContextManager[None]]
    asking: list[str]
    """Names of the threads that have asked for the store."""
    answered: list[LogEntry] = field(default_factory=list[LogEntry])

    def append(self, *entries: LogEntry) -> None:
        """Log a micro-batch."""
        self.log.begin()
        assert self.log.append(entries) == (True,) * len(entries)
        self.answered += entries

    def other_log(self) -> PredictionLog:
        """The log of another worker of this machine, not started."""
        return PredictionLog(
            self.settings, store=lambda: self.store, environments=lambda: frozenset({"default"})
        )

    def logged(self) -> set[UUID]:
        rows, _ = self.store.predictions.read_since(None, limit=100_000)
        found = {row.id for row in rows}
        assert len(found) == len(rows)
        return found

    def is_all_logged_once(self) -> bool:
        """Nothing lost, nothing twice, and nothing that was not answered."""
        return self.logged() == self.ids()

    def ids(self) -> set[UUID]:
        return {one.id for each in self.answered for one in each.predictions}

    def spool(self) -> Spool:
        """The same spool, as another process sees it."""
        return Spool(self.settings.resolved_spool_directory, maximum_bytes=10**9)


@pytest.fixture(scope="module")
def server() -> Iterator[MortalPostgreSQL]:
    started = MortalPostgreSQL(listens=True)
    yield started
    started.close()


@pytest.fixture(scope="module")
def network(server: MortalPostgreSQL) -> Iterator[Network]:
    tools.need(tools.PACKET_FILTERS)
    assert server.port is not None
    with Network(server.port) as opened:
        yield opened


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_directory=tmp_path, log_timeout_seconds=PATIENCE)


@pytest.fixture(params=["sqlite locked", "postgresql paused", "postgresql killed", "postgresql out of reach"])
def bench(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Iterator[Bench]:
    how: str = request.param
    if how.startswith("sqlite"):
        url, away = (
            databases.sqlite_url(tmp_path, migrated=True),
            lambda: databases.locked(tmp_path / "lifelong.db"),
        )
        yield from opened(settings, url, away)
        return
    server: MortalPostgreSQL = request.getfixturevalue("server")
    url = server.create(migrated=True)
    if "reach" in how:
        network: Network = request.getfixturevalue("network")
        yield from opened(settings, network.url(url), network.swallowing)
    else:
        yield from opened(settings, url, lambda: server.paused() if "paused" in how else killed(server))
    server.drop(url)


def opened(settings: Settings, url: str, away: Callable[[], AbstractContextManager[None]]) -> Iterator[Bench]:
    with Store.open(url, "memory://artifacts") as store:
        environments = frozenset(store.environments.list())
        asking: list[str] = []

        def asked() -> Store:
            asking.append(threading.current_thread().name)
            return store

        log = PredictionLog(settings, store=asked, environments=lambda: environments)
        log.start()
        yield Bench(settings, store, log, away, asking)
        log.close()


only_sqlite = pytest.mark.parametrize("bench", ["sqlite locked"], indirect=True)
out_of_reach = pytest.mark.parametrize("bench", ["postgresql out of reach"], indirect=True)
sqlite_and_postgresql = pytest.mark.parametrize(
    "bench", ["sqlite locked", "postgresql killed"], indirect=True
)


@only_sqlite
def test_while_the_database_answers_the_spool_is_not_touched(bench: Bench) -> None:
    bench.append(entry(), entry(request_id="r"))
    assert bench.is_all_logged_once()
    assert bench.log.problem is None
    assert not [*bench.settings.resolved_spool_directory.glob("*.segment")]


def test_an_outage_delays_one_batch_by_the_patience_and_loses_nothing(bench: Bench) -> None:
    bench.append(entry())
    with bench.away():
        bench.append(entry(), entry("b", "r", rows=5))
        assert bench.log.problem is not None
        asked = bench.asking.count("prediction-log")
        for number in range(20):
            new = entry(f"c{number}", f"r{number}")
            assert bench.log.answered.find([new.request]) == {}
            bench.log.new_environments.ensure(new.predictions[0].environment, creator=f"gateway-{number}")
            bench.append(new)
        assert bench.asking.count("prediction-log") == asked, "a database known to be away is not asked"
        state = bench.log.state()
        assert state.predictions == 26
        assert bench.log.failure is None
    eventually(lambda: bench.log.problem is None)
    assert bench.is_all_logged_once()
    bench.append(entry())
    assert bench.is_all_logged_once()
    assert bench.spool().is_empty()
    assert "b" in bench.store.environments.list()


@pytest.mark.parametrize("bench", ["postgresql paused", "postgresql out of reach"], indirect=True)
def test_all_questions_of_a_batch_share_the_patience(bench: Bench) -> None:
    with bench.away():
        asked = bench.asking.count("prediction-log")
        bench.log.begin()
        key = RequestKey(1, "new", "r")
        assert bench.log.answered.find([key]) == {}
        bench.log.new_environments.ensure("new", creator="gateway")
        bench.log.append([entry("new", "r")])
        assert bench.asking.count("prediction-log") == asked + 1
        with pytest.raises(UnavailableError, match="head 3 of m@1"):
            bench.log.answered.head("m@1", 3)
    eventually(lambda: bench.log.problem is None)


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that are opened from now on are given up after two or three seconds."""
    brief = {"tcp_user_timeout": 1000, "keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": 1}
    for name, value in brief.items():
        monkeypatch.setitem(database.NETWORK, name, value)


@pytest.mark.usefixtures("short_silence")
@out_of_reach
def test_of_what_was_under_way_when_the_network_fell_silent_nothing_stays_locked(
    bench: Bench, server: MortalPostgreSQL
) -> None:
    """Neither end is told: the server must find out by itself that nobody will ever end the transaction."""
    changes = bench.store.changes()
    eventually(lambda: sessions(server, "lifelong listener"))
    under_way = entry(request_id="under way", rows=3)
    with ExitStack() as silence:
        transaction = ExitStack()
        connection = transaction.enter_context(bench.store.database.write())
        insert_missing_entries(connection, [under_way])
        silence.enter_context(bench.away())
        bench.append(under_way, entry())
        eventually(lambda: not sessions(server, "lifelong%"))
        with pytest.raises(UnavailableError):
            transaction.close()
    eventually(lambda: bench.log.problem is None)
    assert bench.is_all_logged_once()
    bench.append(entry())
    eventually(lambda: sessions(server, "lifelong listener"))
    changes.wait(LONG)
    changes.close()


def sessions(server: MortalPostgreSQL, name: str) -> int:
    """How many the server has, in its own view, of applications with such a name."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s"
    with psycopg.connect(server.url("postgres").replace("+psycopg", "")) as connection:
        (count,) = connection.execute(query, [name]).fetchone() or (0,)
    return count


@only_sqlite
def test_a_database_that_is_slow_is_not_waited_for_again_and_again(bench: Bench) -> None:
    bench.log.begin()
    bench.log._database.call(lambda _: time.sleep(PATIENCE / 2))
    with pytest.raises(UnavailableError):
        bench.log._database.call(lambda _: time.sleep(PATIENCE))
    with pytest.raises(UnavailableError, match="slow"):
        bench.log._database.call(lambda _: None)
    eventually(lambda: not bench.log._database._thread.is_stuck)
    bench.append(entry())
    assert bench.log.problem is None


@sqlite_and_postgresql
def test_repeated_requests_in_an_outage(bench: Bench) -> None:
    before, first = entry(request_id="before"), entry(request_id="in it")
    bench.append(before)
    with bench.away():
        bench.append(first)
        assert bench.log.append([entry(request_id="in it")]) == (False,)
        found = bench.log.answered.find([first.request, RequestKey(1, "default", "other")])
        assert [one.id for one in found[first.request].predictions] == [first.predictions[0].id]
        assert set(found) == {first.request}
        # What this machine answered before is known without the database, too.
        assert set(bench.log.answered.find([before.request])) == {before.request}
        assert bench.log.append([entry(request_id="before")]) == (False,)
        # What another one answered is answered anew, and left out when it is delivered.
        bench.settings.recent_requests_file.unlink()
        bench.log._recent.close()
        assert bench.log.answered.find([before.request]) == {}
        assert bench.log.append([entry(request_id="before")]) == (True,)
    eventually(lambda: bench.log.problem is None)
    assert bench.is_all_logged_once()
    bench.log.begin()
    found = bench.log.answered.find([before.request, first.request])
    assert found[before.request].predictions[0].id == before.predictions[0].id
    assert found[first.request].predictions[0].id == first.predictions[0].id


@sqlite_and_postgresql
def test_what_the_database_knows_is_not_spooled_while_others_wait(bench: Bench) -> None:
    """Without a look-up before, as for logits: the database answers, but something is delivered first."""
    before, waiting, new = entry(request_id="before"), entry(), entry(request_id="new")
    bench.append(before)
    bench.log._delivery.close()
    bench.spool().append([waiting])
    bench.log.begin()
    entries = [entry(request_id="before"), new, entry(request_id="new"), entry(request_id="before")]
    assert bench.log.append(entries) == (False, True, False, False)
    state = bench.log.state()
    assert state.predictions == 2
    bench.answered += [waiting, new]
    bench.spool().deliver(bench.store.predictions.deliver)
    assert bench.is_all_logged_once()


@only_sqlite
def test_a_look_up_before_says_nothing_about_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One failed, and the database is back; another was made before somebody else was answered first."""
    before, first = entry(request_id="before"), entry(request_id="first")
    bench.append(before)
    bench.log._delivery.close()
    bench.log.begin()

    def silent(*_: object) -> NoReturn:
        raise UnavailableError("the database does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(type(bench.store.predictions), "requests", silent)
        assert set(bench.log.answered.find([before.request])) == {before.request}
        with pytest.raises(UnavailableError, match="does not answer"):
            bench.log.answered.first_answers([before.request, first.request])
    bench.log._circuit_breaker.close(bench.log._circuit_breaker.failures)
    assert bench.log.answered.find([first.request]) == {}
    bench.store.predictions.append([first])
    bench.spool().append([entry()])
    assert bench.log.append([entry(request_id="before"), entry(request_id="first")]) == (False, False)
    found = bench.log.answered.first_answers([before.request, first.request])
    assert [stored.predictions[0].id for stored in found.values()] == [
        one.predictions[0].id for one in (before, first)
    ]


@only_sqlite
def test_environments_in_an_outage_up_to_the_limit(bench: Bench) -> None:
    bench.log.new_environments._maximum = 3
    with bench.away():
        bench.append(entry())
        for name in ("a", "default", "b", "a"):
            bench.log.new_environments.ensure(name, creator="gateway")
        with pytest.raises(ConflictError, match="3 environments"):
            bench.log.new_environments.ensure("c", creator="gateway")
        with pytest.raises(InvalidInputError):
            bench.log.new_environments.ensure("../etc", creator="gateway")
        bench.append(entry("a"), entry("b"))
    eventually(lambda: bench.log.problem is None)
    assert bench.store.environments.list() == ["a", "b", "default"]
    bench.log.begin()
    with pytest.raises(ConflictError, match="3 environments"):
        bench.log.new_environments.ensure("c", creator="gateway")


@only_sqlite
def test_a_promise_that_was_not_kept_is_none(bench: Bench) -> None:
    """A name that no prediction followed counts as little in the next outage as after this one."""
    bench.log.new_environments._maximum = 2
    for name in ("a", "b"):
        with bench.away():
            bench.append(entry())
            bench.log.new_environments.ensure(name, creator="gateway")
        eventually(lambda: bench.log.problem is None)
        bench.append(entry())
    bench.log.new_environments.ensure("b", creator="gateway")
    assert bench.store.environments.list() == ["b", "default"]


@only_sqlite
def test_a_spool_that_cannot_be_written_fails_only_in_an_outage(bench: Bench) -> None:
    bench.settings.resolved_spool_directory.touch()
    bench.append(entry())
    for _ in range(2):
        with bench.away():
            with pytest.raises(UnavailableError, match="spool"):
                bench.append(entry())
            assert bench.log.state() is None
            assert bench.log.failure is not None
        eventually(lambda: bench.log.problem is None)
        bench.append(entry())
        assert bench.log.spool_problem is not None
        assert bench.log.failure is None
    with bench.away():
        with pytest.raises(UnavailableError, match="spool"):
            bench.append(entry())
        bench.settings.resolved_spool_directory.unlink()
        assert bench.log.state() is not None
        assert bench.log.failure is None
        bench.append(entry())
    eventually(lambda: bench.log.problem is None)
    # What was refused may be in the log all the same: the database was asked before the spool, and never answered.
    assert bench.ids() <= bench.logged()


@only_sqlite
def test_what_an_earlier_process_left_is_delivered_although_nobody_asks(bench: Bench) -> None:
    bench.log.close()
    left = entry(request_id="left")
    bench.spool().append([left])
    bench.answered.append(left)
    log = bench.other_log()
    log.start()
    eventually(bench.is_all_logged_once)
    late = entry()
    bench.spool().append([late])
    bench.answered.append(late)
    eventually(bench.is_all_logged_once)
    log.close()


@only_sqlite
def test_nothing_overtakes_what_another_process_is_delivering(bench: Bench) -> None:
    gate, began = threading.Event(), threading.Event()
    other, first = bench.spool(), entry()
    other.append([first])
    bench.answered.append(first)

    def write(entries: Any) -> None:
        began.set()
        assert gate.wait(10)
        bench.store.predictions.deliver(entries)

    thread = threading.Thread(target=other.deliver, args=(write,))
    bench.log.close()
    thread.start()
    assert began.wait(10)
    log = bench.other_log()
    log.start()
    second = entry(request_id="second")
    log.begin()
    log.append([second])
    bench.answered.append(second)
    assert bench.store.predictions.read_since(None, limit=10)[0] == []
    assert log.answered.find([second.request])[second.request].predictions[0].id == second.predictions[0].id
    gate.set()
    thread.join()
    eventually(lambda: log.problem is None)
    assert bench.is_all_logged_once()
    log.close()


def test_a_store_that_is_not_open_yet(settings: Settings, tmp_path: Path) -> None:
    url = databases.sqlite_url(tmp_path, migrated=True)
    opened: list[Store] = []

    def store() -> Store:
        if not opened:
            raise UnavailableError("the database cannot be used.")
        return opened[0]

    log = PredictionLog(settings, store=store, environments=frozenset)
    log.start()
    log.begin()
    assert log.append([entry()]) == (True,)
    assert log.problem == "the database cannot be used."
    with Store.open(url, "memory://artifacts") as late:
        opened.append(late)
        eventually(lambda: log.problem is None)
        assert len(late.predictions.read_since(None, limit=10)[0]) == 1
        log.close()


@only_sqlite
def test_an_entry_that_the_log_refuses_is_refused_in_an_outage_too(bench: Bench) -> None:
    too_long, empty = entry(request_id="x" * 300), LogEntry((), RequestKey(1, "default", "r"), b"digest")
    for refused in (too_long, empty):
        with pytest.raises(InvalidInputError):
            bench.append(refused)
    bench.append(entry(request_id="r"))  # the claim of the refused entry was withdrawn
    with bench.away():
        bench.append(entry())
        with pytest.raises(InvalidInputError):
            bench.append(too_long)
    eventually(lambda: bench.log.problem is None)
    assert bench.is_all_logged_once()


@only_sqlite
def test_a_database_that_comes_and_goes(bench: Bench) -> None:
    stop = threading.Event()

    def load() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            bench.append(entry("default", f"r{number}"))
            time.sleep(0.002)

    thread = threading.Thread(target=load)
    thread.start()
    for _ in range(4):
        with bench.away():
            time.sleep(PATIENCE * 1.2)
        time.sleep(0.15)
    stop.set()
    thread.join()
    eventually(lambda: bench.log.problem is None)
    assert bench.is_all_logged_once()
    assert len(bench.answered) > 20


@only_sqlite
def test_steady_load_of_several_workers_does_not_keep_the_spool_from_getting_empty(bench: Bench) -> None:
    stop = threading.Event()
    logs = [bench.other_log() for _ in range(4)]

    def load(log: PredictionLog) -> None:
        while not stop.is_set():
            mine = entry()
            log.begin()
            log.append([mine])
            bench.answered.append(mine)

    threads = [threading.Thread(target=load, args=(log,)) for log in logs]
    with bench.away():
        for log, thread in zip(logs, threads, strict=True):
            log.start()
            thread.start()
        eventually(lambda: all(log.problem for log in logs))
    eventually(lambda: not any(log.problem for log in logs))
    stop.set()
    for log, thread in zip(logs, threads, strict=True):
        thread.join()
        log.close()
    eventually(bench.is_all_logged_once)


class Unanswered:
    """The store of a worker whose commits arrive, or do not, and are never confirmed."""

    def __init__(self, store: Store, *, arrives: bool) -> None:
        self._store = store
        self._arrives = arrives
        self.under_way = threading.Event()
        self.may_end = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return self if name == "predictions" else getattr(self._store, name)

    def append(self, entries: tuple[LogEntry, ...]) -> NoReturn:
        if self._arrives:
            self._store.predictions.append(entries)
        self.under_way.set()
        self.may_end.wait(LONG)
        raise UnavailableError("the connection was lost before the answer.")


@only_sqlite
@pytest.mark.parametrize("is_away", [False, True], ids=["database is back", "database is away"])
@pytest.mark.parametrize("dies", [False, True], ids=["first worker lives", "first worker dies"])
@pytest.mark.parametrize("arrives", [False, True], ids=["commit is lost", "commit arrives"])
def test_a_repetition_while_another_worker_waits_for_its_commit_gets_the_same_answer(
    bench: Bench,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    arrives: bool,
    dies: bool,
    is_away: bool,
) -> None:
    """A client leaves and repeats its request; the first worker neither knows nor tells whether it was logged."""
    store = Unanswered(bench.store, arrives=arrives)
    patient = settings.model_copy(update={"log_timeout_seconds": LONG})
    first_worker = PredictionLog(patient, store=lambda: store, environments=frozenset)  # type: ignore[arg-type, return-value]
    first_worker._database.start()
    first, repetition = entry(request_id="r", rows=2), entry(request_id="r", rows=2)
    written: list[tuple[bool, ...]] = []

    def log_first() -> None:
        first_worker.begin()
        written.append(first_worker.append([first]))

    thread = threading.Thread(target=log_first)
    thread.start()
    assert store.under_way.wait(LONG)
    bench.log.begin()
    with bench.away() if is_away else ExitStack():
        assert bench.log.append([repetition]) == (False,)
        answer = bench.log.answered.first_answers([first.request])[first.request]
        assert answer.predictions == first.predictions
        if not dies:
            store.may_end.set()
            thread.join(LONG)
            assert written[0] in ((True,), (False,))
    bench.answered.append(first)
    eventually(bench.is_all_logged_once)
    store.may_end.set()
    thread.join(LONG)
    first_worker._database.close()
    eventually(bench.is_all_logged_once)


@only_sqlite
def test_a_request_whose_first_answer_was_erased_is_new(bench: Bench) -> None:
    first, again = entry(request_id="r"), entry(request_id="r")
    bench.append(first)
    bench.append(entry(request_id="next"))  # writes that the first one is logged
    with bench.store.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM predictions")
        connection.exec_driver_sql("DELETE FROM requests")
    bench.answered.clear()
    bench.append(again)
    assert bench.is_all_logged_once()
    with bench.away():
        bench.log.begin()
        assert bench.log.append([entry(request_id="r")]) == (False,)
        assert (
            bench.log.answered.first_answers([again.request])[again.request].predictions == again.predictions
        )


@only_sqlite
def test_another_body_under_the_same_id_leaves_the_claim_of_the_first_answer(
    bench: Bench,
) -> None:
    """Of another worker, which has not written yet that it is logged."""
    first, other_body = entry(request_id="r"), replace(entry(request_id="r"), body_digest=b"another digest")
    bench.append(first)
    other_worker = bench.other_log()
    other_worker._database.start()
    other_worker.begin()
    assert other_worker.append([other_body]) == (False,)
    other_worker._database.close()
    bench.append(entry(request_id="next"))  # writes that the first one is logged
    with bench.away():
        bench.log.begin()
        assert bench.log.append([entry(request_id="r")]) == (False,)
        found = bench.log.answered.first_answers([first.request])
        assert found[first.request].predictions == first.predictions


@only_sqlite
def test_a_claim_of_a_dead_worker_to_another_body_is_replaced_by_what_is_logged(
    bench: Bench,
) -> None:
    never_logged = replace(entry(request_id="r"), body_digest=b"another digest")
    dead_worker = bench.other_log()
    dead_worker.answered.claim([never_logged])
    dead_worker.answered._recent.close()
    logged = entry(request_id="r")
    bench.append(logged)
    bench.append(entry(request_id="next"))
    with bench.away():
        bench.log.begin()
        assert bench.log.append([entry(request_id="r")]) == (False,)
        found = bench.log.answered.first_answers([logged.request])
        assert found[logged.request].predictions == logged.predictions
