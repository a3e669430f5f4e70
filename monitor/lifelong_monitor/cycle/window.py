"""The window of a cycle, from the rows of the log or, where it is large, from the summaries of whole hours."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import AdaptationReport, FittedQuantifier, LabeledLogits, WindowSummary
from lifelong_core.deploy.adaptation.reasons import Reason
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.registry import Model
from lifelong_core.store import Store
from lifelong_core.store.engine.leases import Lease
from lifelong_core.store.log.identifiers import EPOCH, logged_at
from lifelong_core.store.log.records import Window
from lifelong_core.store.summaries.rows import sums_agree
from lifelong_core.store.summaries.summaries import SummarisedWindow
from lifelong_core.values.arrays import Logits
from lifelong_core.values.errors import ConflictError, LifelongError, NotFoundError
from lifelong_monitor.cycle.reports import Hours, Inputs

LARGEST_WINDOW_OF_ROWS = 20_000
"""Up to here a window is read row by row: exact, and 0.2 s with 8 classes. Estimates from summaries differ from it by
less than a tenth of their interval's width, and 20,000 rows have a tenth of the interval that 200 have."""
SHORTEST_WINDOW_OF_HOURS = timedelta(hours=6)
"""A window that may be no older than this is read row by row, however large: whole hours would cut too much off it."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class CycleWindow:
    """The predictions that a cycle judges."""

    data: Logits | Sequence[WindowSummary]
    """in order of time"""
    times: Sequence[float]
    """seconds since 1970 of each row, or of the begin of each summary's hours"""
    groups: NDArray[np.generic] | None
    """of rows; a summary knows its own"""
    samples: int
    quarantined: int
    log_position: int
    first: str
    """id of the oldest row, or the time where the oldest hour begins"""
    last: str
    """id of the newest row, or the time where the newest hour begins"""
    hours: Hours | None
    """None: made of rows"""
    rows: Callable[[], Window]
    """with which the sequential test begins"""


def load_window(
    store: Store,
    settings: Settings,
    model_id: int,
    environment: str,
    fitted: FittedQuantifier | LabeledLogits,
    *,
    classes: int,
    due_at: datetime,
    log_position: int,
) -> CycleWindow | None:
    """Load the newest window of a population; None: it needs summaries, and they are not complete.

    Without a fitted quantifier there are no summaries, so rows are read: the cycle refuses anyway.
    """
    since = due_at - settings.window_age
    is_short = settings.window_age < SHORTEST_WINDOW_OF_HOURS
    is_small = settings.window_samples <= LARGEST_WINDOW_OF_ROWS
    if is_short or is_small or not isinstance(fitted, FittedQuantifier):
        limit = settings.window_samples if is_short else min(settings.window_samples, LARGEST_WINDOW_OF_ROWS)
        return _of_rows(
            store.predictions.window(
                model_id, environment, limit=limit, since=since, log_position=log_position, classes=classes
            )
        )
    summarised = store.summaries.newest(
        model_id, environment, fitted, samples=settings.window_samples, since=since
    )
    if summarised is None:
        return None
    return _of_hours(
        store, model_id, environment, summarised, limit=settings.evidence_samples, classes=classes
    )


def reload_window(
    store: Store,
    cycle: Cycle,
    inputs: Inputs,
    fitted: FittedQuantifier | LabeledLogits,
    *,
    classes: int,
) -> CycleWindow:
    """Load again the window of a past cycle; without `classes` no row is left out.

    Raises:
        NotFoundError: the log does not hold it any more.
    """
    if inputs.hours is None or not isinstance(fitted, FittedQuantifier):
        window = store.predictions.window(
            cycle.model_id,
            cycle.environment,
            limit=cycle.window_samples + (inputs.quarantined or 0),
            since=EPOCH,
            log_position=cycle.log_position,
            classes=classes,
        )
        if len(window.ids) != cycle.window_samples:
            raise _gone(f"only {len(window.ids)} of the {cycle.window_samples} predictions of this cycle")
        return _of_rows(window)
    hours = inputs.hours
    summarised = store.summaries.rebuilt_window(
        cycle.model_id,
        cycle.environment,
        fitted,
        since=hours.since,
        until=hours.until,
        log_position=cycle.log_position,
        is_grouped=hours.is_grouped,
    )
    if _counts_digest(summarised.summary) != hours.counts_digest or not _close(summarised.summary, hours):
        raise _gone(
            f"{summarised.summary.samples} predictions of the {cycle.window_samples} of this cycle, or others"
        )
    return _of_hours(
        store, cycle.model_id, cycle.environment, summarised, limit=inputs.limit, classes=classes
    )


def judge_window(report: AdaptationReport, taken: CycleWindow) -> AdaptationReport:
    """Return the report; a refusal where no row of the window can be judged."""
    if taken.samples or not taken.quarantined:
        return report
    text = (
        f"None of the {taken.quarantined} predictions can be judged: their logits are not finite, all equal, or of"
        " another number of classes."
    )
    return replace(report, outcome="refuse", reasons=(Reason("window_invalid", text),))


def _of_rows(window: Window) -> CycleWindow:
    return CycleWindow(
        data=window.logits,
        times=[logged_at(row).timestamp() for row in window.ids],
        groups=window.groups,
        samples=len(window.ids),
        quarantined=window.quarantined,
        log_position=window.log_position,
        first=str(window.ids[0]) if window.ids else "",
        last=str(window.ids[-1]) if window.ids else "",
        hours=None,
        rows=lambda: window,
    )


def _of_hours(
    store: Store,
    model_id: int,
    environment: str,
    summarised: SummarisedWindow,
    *,
    limit: int,
    classes: int,
) -> CycleWindow:
    def rows() -> Window:
        return store.predictions.window(
            model_id,
            environment,
            limit=limit,
            since=summarised.buckets[0],
            log_position=summarised.log_position,
            classes=classes,
        )

    hours = None
    if summarised.buckets:
        hours = Hours(
            since=summarised.buckets[0],
            until=summarised.buckets[-1] + _HOUR,
            is_grouped=summarised.is_grouped,
            counts_digest=_counts_digest(summarised.summary),
            moments=tuple(summarised.summary.moments.tolist()),
        )
    return CycleWindow(
        data=summarised.parts,
        times=[begin.timestamp() for begin in summarised.begins],
        groups=None,
        samples=summarised.summary.samples,
        quarantined=summarised.quarantined,
        log_position=summarised.log_position,
        first=summarised.buckets[0].isoformat() if summarised.buckets else "",
        last=summarised.buckets[-1].isoformat() if summarised.buckets else "",
        hours=hours,
        rows=rows,
    )


def _counts_digest(summary: WindowSummary) -> str:
    """SHA-256 (hex) over the number of samples in each cell, which is the same however they are added up."""
    parts = (summary.cells.astype("<i8"), summary.counts.astype("<i8"))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def _close(summary: WindowSummary, hours: Hours) -> bool:
    moments = np.asarray(hours.moments)
    return summary.moments.shape == moments.shape and sums_agree(summary.moments, moments, summary.samples)


def _gone(what: str) -> NotFoundError:
    return NotFoundError(
        f"the log holds {what}.",
        field="cycle",
        hint="Predictions older than the retention time are deleted; newer cycles can be replayed.",
    )


log = logging.getLogger(__name__)


def update_summaries(
    store: Store,
    model: Model,
    environment: str,
    fitted: FittedQuantifier,
    *,
    lease: Lease,
    may_go_on: Callable[[], bool],
) -> bool:
    """Fold new predictions into the summaries, at least one step.

    Args:
        store: holds the log and its summaries.
        model: of the population.
        environment: of the population.
        fitted: makes the summaries.
        lease: under which they are written.
        may_go_on: asked between two steps.

    Returns:
        Whether it was stopped with work left. A failure that we can explain is logged and no more: small windows do
        without summaries, and the next cycle tries again.
    """
    classes = fitted.calibration.classes
    try:
        while True:
            try:
                done = store.summaries.fold(model, environment, fitted, classes=classes, lease=lease)
            except ConflictError as error:
                # Rows were deleted meanwhile: the next step sees what is left. A lost lease never comes back.
                if error.field == "lease":
                    raise
            else:
                if done.is_done:
                    return False
            if not may_go_on():
                return True
    except LifelongError as error:
        log.warning("%s in %s: the summaries are not up to date. %s", model.reference, environment, error)
        return False
