"""One monitor at a time: a long cycle keeps its lease, a suspended or dead monitor loses it."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import FittedQuantifier
from lifelong_core.store import Model, Store
from lifelong_core.store.engine.leases import Lease, hold_lease
from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.cycle.cycle import ELSEWHERE, CycleResult, run_cycle
from lifelong_monitor.cycle.lease import hold_renewed_lease
from lifelong_monitor.cycle.subject import FittedQuantifiers
from tests.unit.monitor.daemons import until
from tests.unit.monitor.population import DUE, SHIFTED, draw, predict


def test_a_lease_lasts_as_long_as_the_work(store: Store) -> None:
    with hold_renewed_lease(store.leases, "work", 3) as lease:
        end = lease.ends_at
        until(lambda: time.monotonic() > end)
        assert store.leases.acquire("work", "another", 60) is None
        with store.database.write() as connection:
            hold_lease(connection, lease)
    assert store.leases.acquire("work", "another", 60) is not None
    assert not [thread for thread in threading.enumerate() if thread.name == "lease"]


def test_one_renewal_may_fail(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failures = store.leases.renew, iter([UnavailableError("away for a moment.")])
    is_renewed = threading.Event()

    def fails_once(lease: Lease, seconds: float) -> Lease:
        for failure in failures:
            raise failure
        renewed = real(lease, seconds)
        is_renewed.set()
        return renewed

    monkeypatch.setattr(store.leases, "renew", fails_once)
    with hold_renewed_lease(store.leases, "work", 3) as lease:
        before = lease.ends_at
        assert is_renewed.wait(30)
        assert lease.ends_at > before


_MONITOR = """
import sys
from datetime import datetime
from pathlib import Path
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_monitor.cycle.cycle import run_cycle

settings = Settings(data_directory=Path(sys.argv[1]), window_samples=600, lease_seconds=2)
store = Store.from_settings(settings)

def about_to_write():
    print("about to write", flush=True)
    sys.stdin.readline()
    return False

model = store.models.get("lesions@1")
result = run_cycle(store, settings, model, "clinic", datetime.fromisoformat(sys.argv[2]), stopping=about_to_write)
print(result.outcome, flush=True)
"""


@contextmanager
def another_monitor(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """In the middle of the cycle, with a lease of two seconds, until a line comes."""
    folder = str(settings.data_directory)
    with subprocess.Popen(
        [sys.executable, "-c", _MONITOR, folder, DUE.isoformat()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")},
    ) as process:
        assert process.stdout.readline() == "about to write\n"
        try:
            yield process
        finally:
            process.kill()


def suspend(process: subprocess.Popen[str], store: Store) -> None:
    """Stop the process, but not while its renewal of the lease holds SQLite's write lock, which would block all."""
    deadline = time.monotonic() + 30
    with closing(sqlite3.connect(store.database.url.database or "", timeout=0.5)) as connection:
        while True:
            os.kill(process.pid, signal.SIGSTOP)
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(process.pid, signal.SIGCONT)
                assert time.monotonic() < deadline
            else:
                connection.rollback()
                return


def take_over(store: Store, settings: Settings, model: Model) -> CycleResult:
    """Come back until the lease has ended, as the daemon does."""
    short = settings.model_copy(update={"lease_seconds": 2.0})
    deadline = time.monotonic() + 30
    while (result := run_cycle(store, short, model, "clinic", DUE)).reason == ELSEWHERE:
        assert time.monotonic() < deadline
        assert result.again_in == 2
        time.sleep(0.1)
    return result


def test_a_monitor_that_was_stopped_in_mid_cycle_writes_nothing_when_it_comes_back(
    store: Store, settings: Settings, model: Model, tmp_path: Path
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    with another_monitor(settings) as process:
        suspend(process, store)
        assert take_over(store, settings, model).outcome == "swap"
        before = (store.cycles.list(), store.heads.list(model.reference), store.audit.list())
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate("\n", timeout=30)[0] == "skip\n"
    assert (store.cycles.list(), store.heads.list(model.reference), store.audit.list()) == before
    assert len(before[0]) == 1


def test_when_a_monitor_dies_in_mid_cycle_another_takes_over(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    with another_monitor(settings) as process:
        process.kill()
        process.wait()
        assert store.cycles.list() == []
        assert take_over(store, settings, model).outcome == "swap"
    assert len(store.cycles.list()) == 1
    assert store.summaries.check(model, "clinic", fitted_of(store, settings, model)) == []


def fitted_of(store: Store, settings: Settings, model: Model) -> FittedQuantifier:
    fitted = FittedQuantifiers().get(store, model, model.calibration_set_id or 0, settings.quantifier)
    assert isinstance(fitted, FittedQuantifier)
    return fitted
