"""A monitor's cycle over a large window of the log, whose summaries it keeps up to date, with the default settings.

The peer is what the same window costs without summaries: all its rows read and summarised again.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import numpy as np

from benchmarks.store_writers import CLASSES, SEED
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import FittedQuantifier, LabeledLogits
from lifelong_core.store import LogEntry, Model, Prediction, Store, new_prediction_id, register_calibration
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_monitor.cycle.cycle import CycleResult, run_cycle
from lifelong_monitor.cycle.subject import FittedQuantifiers
from tests.databases import PostgreSQL, database

HOURS = 168
"""The rows are spread evenly over so many."""
ENVIRONMENT = "default"
_CALIBRATION = 3000
_AT_ONCE = 5000
_NAMES = tuple(f"class-{index}" for index in range(CLASSES))
_COSTS = 1.0 - np.eye(CLASSES)


def measure_cycles(kind: str, server: PostgreSQL, *, rows: int, cycles: int) -> dict[str, float]:
    """Seconds of the cycle that folds everything, and of later ones, each of which finds one hour's rows more.

    Args:
        kind: of the database.
        server: where it is made, for PostgreSQL.
        rows: logged predictions in the window.
        cycles: how many come after the first.
    """
    with _installation(kind, server, rows) as (settings, store, model):
        now, rng = datetime.now(UTC), np.random.default_rng(SEED)
        an_hour = timedelta(hours=1)
        for hours_ago in range(HOURS, 0, -1):
            _log(store, model, now - hours_ago * an_hour, rows // HOURS, rng)
        quantifiers = FittedQuantifiers()
        fitted = quantifiers.get(store, model, model.calibration_set_id or 0, settings.quantifier)
        assert isinstance(fitted, FittedQuantifier)
        seconds: list[float] = []
        samples = 0
        for number in range(1 + cycles):
            if number:
                _log(store, model, now - an_hour, rows // HOURS, rng)
            due_at = now + number * timedelta(seconds=settings.cycle_interval_seconds)
            began = time.perf_counter()
            result = run_cycle(store, settings, model, ENVIRONMENT, due_at, quantifiers=quantifiers)
            seconds.append(time.perf_counter() - began)
            samples = _judged(result)
        began = time.perf_counter()
        store.summaries.rebuilt_window(
            model.id,
            ENVIRONMENT,
            fitted,
            since=now - settings.window_age,
            until=now + an_hour,
            log_position=store.predictions.log_position(),
            is_grouped=False,
        )
        anew = time.perf_counter() - began
    cycle = statistics.median(seconds[1:])
    return {
        "rows": samples,
        "new_rows": rows // HOURS,
        "first_seconds": seconds[0],
        "cycle_seconds": cycle,
        "longest_seconds": max(seconds[1:]),
        "rows_seconds": anew,
        "ratio": anew / cycle,
    }


def show_cycles(database_kind: str, one: dict[str, float]) -> None:
    """Print them."""
    print(
        f"{database_kind}: a cycle over {one['rows']:,} rows, {one['new_rows']:,} of them new:"
        f" {one['cycle_seconds']:.2f} s (longest {one['longest_seconds']:.2f});"
        f" with all to be summarised first {one['first_seconds']:.1f};"
        f" to summarise the window from its rows {one['rows_seconds']:.1f} s, {one['ratio']:.0f} times as long"
    )


@contextmanager
def _installation(kind: str, server: PostgreSQL, rows: int) -> Iterator[tuple[Settings, Store, Model]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with database(kind, folder, server) as url:
            settings = Settings(
                data_directory=folder,
                database_url=url,
                window_samples=2 * rows,
                window_seconds=(HOURS + 24) * 3600.0,
            )
            with Store.open(url, settings.resolved_artifacts_url) as store:
                store.tasks.add("task", _NAMES, _COSTS, actor="benchmark")
                model = store.models.add("task", "model", kind="external", actor="benchmark")
                labelled = _draw(_CALIBRATION, np.random.default_rng(SEED + 1))
                register_calibration(store, model.reference, labelled, actor="benchmark")
                yield settings, store, store.models.get(model.reference)


def _draw(samples: int, rng: np.random.Generator) -> LabeledLogits:
    labels = np.arange(samples) % CLASSES
    return LabeledLogits(
        2.5 * np.eye(CLASSES)[labels] + rng.normal(scale=1.25, size=(samples, CLASSES)), labels
    )


def _log(store: Store, model: Model, moment: datetime, rows: int, rng: np.random.Generator) -> None:
    """As if made at that moment."""
    first = first_id_at(moment).int
    for start in range(0, rows, _AT_ONCE):
        store.predictions.append(
            [
                LogEntry((Prediction(_id_after(first), model.id, ENVIRONMENT, 1, 0, row),))
                for row in _draw(min(_AT_ONCE, rows - start), rng).logits.astype(np.float32)
            ]
        )


def _id_after(first: int) -> UUID:
    return UUID(int=first + new_prediction_id().int % 2**62)


def _judged(result: CycleResult) -> int:
    if result.outcome == "skip" or result.last is None:
        raise RuntimeError(f"the cycle judged nothing: {result.reason}")
    return result.last.window_samples
