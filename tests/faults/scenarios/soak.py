"""Constant load for a long time, with swaps, outages and disconnecting clients: nothing is lost, and nothing grows."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, get_args

from prometheus_client.parser import text_string_to_metric_families

from tests.faults import resources
from tests.faults.load import Load
from tests.faults.mixed_load import MIXED_PERIOD, WAYS_TO_LEAVE, ImageKind, MixedLoad
from tests.faults.resources import Rest, Watch
from tests.faults.scenarios.swaps import distinct_head
from tests.faults.trial import Outcome, Scale, Trial, delivery_patience, under_load
from tests.faults.world import MODEL, World, patiently
from tests.soak.memory import KEPT_SHARE, PARTS, between

LOAD_SHARE: Final = 0.7
"""Share of the capacity that is offered."""
MOST_GROWTH: Final = 0.05
"""Largest growth of the memory that a process keeps, from the first to the last quarter after the warm-up."""
MOST_QUICK_GROWTH: Final = 0.1
"""The same for the shortened form of a minute, in which one peak counts."""
_SWAP_SECONDS: Final = 10.0
_SHORTEST_SECONDS: Final = 2.0
"""Shortest time that a head is in force: every worker serves it within a second."""
_MOST_SECONDS: Final = 120.0
"""Longest prolongation of a round on a slow machine."""
_AWAY_SECONDS: Final = 4.0
_CLIENTS: Final = 24
"""Simultaneous clients of the saturation."""
_THREADS: Final = 60
"""Largest number of simultaneous requests of the load; slow readers occupy some of them."""


@dataclass(frozen=True)
class Plan:
    """Times of a soak, in seconds.

    Attributes:
        saturation: measurement of the capacity.
        round: load between two comparisons of log and answers.
        warm_up_rounds: rounds before the growth counts.
        rounds: all rounds.
        interval: time between two samples of the memory.
    """

    saturation: float
    round: float
    warm_up_rounds: int
    rounds: int
    interval: float


FULL: Final = Plan(saturation=20, round=150, warm_up_rounds=2, rounds=12, interval=5)
QUICK: Final = Plan(saturation=3, round=10, warm_up_rounds=1, rounds=3, interval=0.5)


def serving_soak(world: World, scale: Scale) -> Outcome:
    """30 minutes of images and logits at 70 % of the capacity, with a swap every 10 s, restarts of the database, and
    clients that disconnect in mid-request: memory, descriptors and threads of the service do not grow.
    """
    plan = QUICK if scale.is_quick else FULL
    began = time.monotonic()
    world.ready()
    capacity = _capacity(world, plan.saturation, scale)
    outcomes: list[Outcome] = []
    rests: list[dict[str, Rest]] = []
    warm_at = 0.0
    with Watch(world.service, interval=plan.interval) as watch:
        for number in range(plan.rounds):
            outcomes.append(_round(world, number, LOAD_SHARE * capacity, plan, scale))
            rests.append(watch.rest())
            world.settle()
            if number == plan.warm_up_rounds - 1:
                warm_at = watch.seconds
        until = watch.seconds
    first, last = rests[plan.warm_up_rounds - 1], rests[-1]
    outcome = _together(outcomes)
    outcome.violations += resources.ended_processes(watch.ended)
    outcome.violations += resources.grown_holdings(first, last)
    if not watch.ended:
        outcome.violations += resources.grown_memory(
            watch.memory, after=warm_at, until=until, most=scale.of(MOST_GROWTH, MOST_QUICK_GROWTH)
        )
        outcome.figures["processes"] = _processes(watch, first, last, warm_at, until)
    outcome.figures = {"capacity": capacity, "offered": LOAD_SHARE * capacity} | outcome.figures
    outcome.figures |= _refused_by_limit(world)
    outcome.seconds = time.monotonic() - began
    return outcome


def _refused_by_limit(world: World) -> dict[str, int]:
    """Number of requests that each limit has refused since the start of the service."""
    counts = Counter[str]()
    for family in text_string_to_metric_families(world.service.send("GET", "/metrics").content.decode()):
        for sample in family.samples:
            if sample.name == "lifelong_refused_requests_total" and sample.value:
                counts[f"refused_by_{sample.labels['limit']}"] += int(sample.value)
    return dict(counts)


def _capacity(world: World, seconds: float, scale: Scale) -> float:
    """Requests per second that service and load generator reach together on this machine."""
    load = MixedLoad(
        world.port,
        world.installation.token,
        "saturation",
        rate=None,
        threads=_CLIENTS,
        seed=scale.seed,
    )
    with load:
        began = time.monotonic()
        time.sleep(seconds)
        answered, passed = len(load.answers), time.monotonic() - began
    assert patiently(lambda: world.spool().predictions == 0, delivery_patience()) is not None
    assert answered, load.failures[:1]
    return answered / passed


def _round(world: World, number: int, rate: float, plan: Plan, scale: Scale) -> Outcome:
    """One round of the load with a restart of the database in its middle."""
    name = f"serving_soak_{number}"
    with under_load(world, name, scale, rate=rate, threads=_THREADS, kind=MixedLoad) as trial:
        until = time.monotonic() + plan.round
        published: list[int] = []
        while (left := until - time.monotonic()) > _SHORTEST_SECONDS:
            swap_at = time.monotonic()
            head = distinct_head(number * int(plan.round / _SWAP_SECONDS) + len(published))
            record = world.store.heads.publish(MODEL, head, environment=trial.environment, actor="faults")
            published.append(record.version)
            if not trial.faults and left <= plan.round / 2 + _SWAP_SECONDS:
                _restart(trial, is_killed=number % 2 == 1)
            time.sleep(max(0.0, min(swap_at + _SWAP_SECONDS, until) - time.monotonic()))
        # Every kind of request, also where the machine is slow.
        patiently(lambda: len(trial.load.answers) >= MIXED_PERIOD, _MOST_SECONDS)
        outcome = trial.conclude()
        outcome.violations += _unused_heads(trial, published)
        outcome.violations += _unanswered(trial)
        outcome.violations += _missing_disconnections(trial.load)
        outcome.figures |= {"load_seconds": plan.round, "head_swaps": len(published)}
        outcome.violations += _missing_images(trial.load)
        outcome.figures |= _disconnections(trial.load) | _images(trial.load)
        return outcome


def _restart(trial: Trial, *, is_killed: bool) -> None:
    """Stop the database for some seconds: SQLite is locked, PostgreSQL is stopped regularly or killed."""
    world = trial.world
    with trial.fault():
        with _killed(world) if is_killed and world.server is not None else world.database_away():
            time.sleep(_AWAY_SECONDS)
        trial.database_is_back()


@contextmanager
def _killed(world: World) -> Iterator[None]:
    assert world.server is not None
    world.server.kill()
    try:
        yield
    finally:
        world.server.start()


def _unused_heads(trial: Trial, published: Sequence[int]) -> list[str]:
    """Heads that were in force for seconds and answered nothing: they were not swapped in."""
    used = {answer.head_version for answer in trial.load.answers}
    return [
        f"head {version} was in force and answered nothing" for version in published if version not in used
    ]


def _unanswered(trial: Trial) -> list[str]:
    """Requests of patient clients whose connection ended, or was silent for long, before their answer."""
    return [
        f"{one.request_id} got no answer at {one.resets} tries" for one in trial.load.answers if one.resets
    ]


def _disconnections(load: Load) -> dict[str, int]:
    """Number of disconnections of each kind."""
    assert isinstance(load, MixedLoad)
    return {f"left_{kind}": load.disconnected[kind] for kind in WAYS_TO_LEAVE}


def _missing_disconnections(load: Load) -> list[str]:
    """Kinds of disconnections that did not occur."""
    return [
        f"no client {kind.replace('_', ' ')}" for kind, count in _disconnections(load).items() if not count
    ]


def _images(load: Load) -> dict[str, int]:
    """Number of answered images of each kind."""
    assert isinstance(load, MixedLoad)
    numbers = [int(one.request_id.rpartition("-")[2]) for one in load.answers if one.is_image]
    counts = Counter(map(load.image_kind, numbers))
    return {f"{kind}_images": counts[kind] for kind in get_args(ImageKind)}


def _missing_images(load: Load) -> list[str]:
    """Kinds of images of which none was answered."""
    return [f"no {kind.replace('_', ' ')}" for kind, count in _images(load).items() if not count]


def _together(outcomes: Sequence[Outcome]) -> Outcome:
    """The sums of all rounds; of latencies and delivery times the largest."""
    deliveries = [one.seconds_to_deliver for one in outcomes if one.seconds_to_deliver is not None]
    figures: dict[str, Any] = {
        name: sum(one.figures[name] for one in outcomes) for name in outcomes[0].figures
    }
    return Outcome(
        scenario="serving_soak",
        database=outcomes[0].database,
        faults=sum(one.faults for one in outcomes),
        answered=sum(one.answered for one in outcomes),
        failed=sum(one.failed for one in outcomes),
        lost=sum(one.lost for one in outcomes),
        duplicated=sum(one.duplicated for one in outcomes),
        seconds_to_deliver=max(deliveries, default=None),
        milliseconds={
            name: max((one.milliseconds[name] or 0 for one in outcomes), default=None)
            for name in outcomes[0].milliseconds
        },
        violations=[violation for one in outcomes for violation in one.violations],
        figures=figures,
    )


def _processes(
    watch: Watch, first: dict[str, Rest], last: dict[str, Rest], after: float, until: float
) -> list[dict[str, Any]]:
    """Figures of each process: memory of each quarter after the warm-up, and what it holds at rest."""
    part = (until - after) / PARTS
    rows: list[dict[str, Any]] = []
    for name, samples in watch.memory.items():
        begins = [after + number * part for number in range(PARTS)]
        kept = [between(samples, begin, begin + part, share=KEPT_SHARE).unique for begin in begins]
        usual = between(samples, until - part, until)
        rows.append(
            {
                "name": name,
                "unique_megabytes": kept,
                "resident_megabytes": usual.resident,
                "growth": kept[-1] / kept[0] - 1,
                "descriptors": [first[name].descriptors, last[name].descriptors],
                "threads": [first[name].threads, last[name].threads],
            }
        )
    return rows
