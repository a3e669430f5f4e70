"""Duration of a monitor's ticks with many populations, of which a few have new predictions."""

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from benchmarks.store_writers import SEED
from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import LogEntry, Model, Prediction, Store, new_prediction_id, register_calibration
from lifelong_core.store.cycles.rows import cycle_row
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.schema import tables
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker
from tests.databases import PostgreSQL, database

NAMES = ("benign", "unclear", "malignant")
CLASSES = len(NAMES)
EVEN = tuple(1 / CLASSES for _ in NAMES)
_COSTS = 1.0 - np.eye(CLASSES)
_HOUR = timedelta(hours=1)
_SAMPLES = 30
"""Predictions of a population before the first round."""
_NEW_SAMPLES = 200
"""New predictions of a busy population in each round."""
_POLLS = 50


def measure_ticks(kind: str, server: PostgreSQL, *, populations: int, busy: int) -> dict[str, float]:
    """Seconds of the ticks of a monitor.

    Every population has been judged before it starts, and its summaries are complete. Of the rounds, some have no news,
    and some have them in `busy` populations.

    Args:
        kind: of the database.
        server: where it is made, for PostgreSQL.
        populations: how many have predictions.
        busy: how many of them get new ones.
    """
    with installation(kind, server) as (settings, store, model):
        rng = np.random.default_rng(SEED)
        names = [f"site-{number:05}" for number in range(populations)]
        _watch_all(store, settings, model, names, rng)
        ticker = Ticker(store, settings, Exporter(cycle_interval_seconds=settings.cycle_interval_seconds))
        due_at = due_before(datetime.now(UTC), _HOUR) + _HOUR
        first = _timed(ticker, due_at, due_at)
        idle = [_timed(ticker, due_at + number * _HOUR, due_at + number * _HOUR) for number in (1, 2, 3)]
        due_at += 3 * _HOUR
        polls = [_timed(ticker, due_at, due_at) for _ in range(_POLLS)]
        rounds: list[float] = []
        chosen = names[:: max(1, populations // busy)][:busy]
        for _ in range(3):
            due_at += _HOUR
            _log_new(store, model, chosen, rng)
            rounds.append(_timed(ticker, due_at, due_at))
        _log_new(store, model, chosen, rng)
        early = _timed(ticker, due_at + _HOUR / 2, due_at)
    return {
        "populations": populations,
        "busy": busy,
        "start_seconds": first,
        "idle_round_seconds": statistics.median(idle),
        "idle_visit_ms": statistics.median(idle) / populations * 1000,
        "busy_round_seconds": statistics.median(rounds),
        "longest_busy_round_seconds": max(rounds),
        "early_tick_seconds": early,
        "poll_ms": statistics.median(polls) * 1000,
    }


def show_ticks(database_kind: str, one: dict[str, float]) -> None:
    """Print them."""
    print(
        f"{database_kind}: {one['populations']:,} populations: a round without news {one['idle_round_seconds']:.2f} s"
        f" ({one['idle_visit_ms']:.2f} ms for each), with {one['busy']} busy ones {one['busy_round_seconds']:.2f} s"
        f" (longest {one['longest_busy_round_seconds']:.2f}), early cycles of those {one['early_tick_seconds']:.2f} s;"
        f" a look for news {one['poll_ms']:.1f} ms; the first round after a start {one['start_seconds']:.1f} s"
    )


@contextmanager
def installation(
    kind: str, server: PostgreSQL | None, **changes: object
) -> Iterator[tuple[Settings, Store, Model]]:
    """A store with a calibrated model and nothing logged."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with database(kind, folder, server) as url:
            policy = PolicySettings(unusual_traffic="report")  # predictions come without a token
            settings = Settings(data_directory=folder, database_url=url, policy=policy).model_copy(
                update=changes
            )
            with Store.open(url, settings.resolved_artifacts_url) as store:
                store.tasks.add("task", NAMES, _COSTS, actor="benchmark")
                model = store.models.add("task", "model", kind="external", actor="benchmark")
                labelled = draw(EVEN, 3000, np.random.default_rng(SEED + 1))
                register_calibration(store, model.reference, labelled, actor="benchmark")
                yield settings, store, store.models.get(model.reference)


def draw(prevalence: Sequence[float], samples: int, rng: np.random.Generator) -> LabeledLogits:
    """Logits of a classifier that is right in about four of five cases when all classes are alike."""
    labels = rng.choice(CLASSES, size=samples, p=prevalence)
    logits = 2.5 * np.eye(CLASSES)[labels] + rng.normal(scale=1.25, size=(samples, CLASSES))
    return LabeledLogits(logits, labels)


def log(store: Store, model: Model, environments: Sequence[str], logits: np.ndarray) -> None:
    """The same predictions of the first head in each environment, in one transaction."""
    rows = logits.astype(np.float32)
    store.predictions.append(
        [
            LogEntry((Prediction(new_prediction_id(), model.id, name, 1, int(row.argmax()), row),))
            for name in environments
            for row in rows
        ]
    )


def _log_new(store: Store, model: Model, names: Sequence[str], rng: np.random.Generator) -> None:
    for name in names:
        log(store, model, [name], draw(EVEN, _NEW_SAMPLES, rng).logits)


def _watch_all(
    store: Store, settings: Settings, model: Model, names: Sequence[str], rng: np.random.Generator
) -> None:
    """Judge the first population, and copy what that left to the others: 5,000 cycles would take minutes."""
    now = datetime.now(UTC)
    with store.database.write() as connection:
        rows = [{"name": name, "created_at": now} for name in names]
        connection.execute(sa.insert(tables.environments), rows)
    logits = draw(EVEN, _SAMPLES, rng).logits
    for some in batched(names, 100):
        log(store, model, some, logits)
    first, *others = names
    cycle = run_cycle(store, settings, model, first, due_before(now, _HOUR)).last
    if cycle is None:
        raise RuntimeError("the cycle judged nothing.")
    with store.database.write() as connection:
        copies = (replace(cycle, id=new_prediction_id(), environment=name) for name in others)
        connection.execute(sa.insert(tables.cycles), [cycle_row(copy) for copy in copies])
        for table in (tables.summary_cursors, tables.window_summaries):
            rows = [row._asdict() for row in connection.execute(sa.select(table))]
            copied = [{**row, "environment": name} for name in others for row in rows]
            connection.execute(sa.insert(table), copied)


def _timed(ticker: Ticker, now: datetime, due_at: datetime) -> float:
    began = time.perf_counter()
    ticker.tick(now, due_at)
    return time.perf_counter() - began
