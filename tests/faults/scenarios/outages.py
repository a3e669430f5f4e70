"""The database is stopped or hangs under load: predictions are answered, and none is lost."""

import time
from contextlib import AbstractContextManager

from tests.faults.trial import Outcome, Scale, Trial, under_load
from tests.faults.world import World, patiently

_BOTH_SECONDS = 20.0
"""A connection stays with its worker; after this time connections have been renewed many times."""
_REPEATED = 20
"""Number of requests that are answered before an outage and repeated in it."""


def database_outage(world: World, scale: Scale) -> Outcome:
    """PostgreSQL is stopped for 60 s, or the SQLite file locked for 10 s."""
    full = 60 if world.server is not None else 10
    return _away(world, scale, "database_outage", world.database_away(), scale.of(full, 4))


def database_hangs(world: World, scale: Scale) -> Outcome:
    """All processes of PostgreSQL are stopped by SIGSTOP: connections stay open, without answers."""
    assert world.server is not None
    return _away(world, scale, "database_hangs", world.server.paused(), scale.of(30, 3))


def network_black_hole(world: World, scale: Scale) -> Outcome:
    """All packets to and from PostgreSQL are dropped: neither end is notified, and connections stay open."""
    with world.behind_network() as network:
        return _away(world, scale, "network_black_hole", network.swallowing(), scale.of(30, 4))


def _away(
    world: World, scale: Scale, name: str, away: AbstractContextManager[None], seconds: float
) -> Outcome:
    with under_load(world, name, scale) as trial:
        time.sleep(scale.of(10, 1))
        answered_before = trial.load.answers[-_REPEATED:]
        with trial.fault():
            with away:
                time.sleep(seconds)
                trial.violations += trial.load.repeat(answered_before)
                waiting = world.spool()
                if not world.readyz()["degraded"]:
                    trial.violations.append("a worker did not say that the database is away")
            trial.database_is_back()
        trial.wait_for_cycles(1)
        time.sleep(scale.of(5, 1))
        trial.figures |= {
            "seconds_away": seconds,
            "spooled_predictions": waiting.predictions,
            "spooled_bytes": waiting.bytes,
        }
        if not waiting.predictions:
            trial.violations.append("nothing was in the spool during the outage: it was none")
        return trial.conclude(is_hidden=True)


def worker_starts_in_outage(world: World, scale: Scale) -> Outcome:
    """During an outage of the database, a worker is killed and replaced, then the whole service is restarted."""
    with under_load(world, "worker_starts_in_outage", scale) as trial:
        time.sleep(scale.of(5, 1))
        with world.database_away():
            time.sleep(1)
            with trial.fault():
                _replace_a_worker(world)
            if not scale.is_quick:
                with trial.fault():
                    world.service.kill()
                    world.start_service()
            began = time.monotonic()
            seen = patiently(lambda: _answering(trial, began) == {"1", "2"}, _BOTH_SECONDS)
            if seen is None:
                trial.violations.append("not both workers that started in the outage have answered")
        trial.database_is_back()
        time.sleep(1)
        return trial.conclude()


def _answering(trial: Trial, began: float) -> set[str]:
    return {answer.worker for answer in list(trial.load.answers) if answer.sent_at > began}


def _replace_a_worker(world: World) -> None:
    victim = world.random.choice(world.wait_for_workers())
    victim.kill()
    while any(one.pid == victim.pid for one in world.service.workers()):
        time.sleep(0.1)
    world.wait_for_workers()
