"""One cycle of one (model, environment): read the window, judge it, record what came of it; and replay that later."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias
from uuid import UUID

from lifelong_core.deploy import AdaptationPolicy, AdaptationReport, PostProcessingHead, adapt
from lifelong_core.errors import ConflictError, NotFoundError
from lifelong_core.settings import Settings
from lifelong_core.store import Store, new_prediction_id
from lifelong_core.store.records import Cycle, HeadRecord, Model, Outcome, Window
from lifelong_monitor.quantifiers import FittedQuantifiers
from lifelong_monitor.schedule import EPOCH, interval_of

CycleOutcome: TypeAlias = Outcome | Literal["skip"]
NO_END = 2**62
"""A commit order beyond every other."""
HELD_BACK = (
    "new predictions cannot be read safely yet: an older transaction on the database server has not ended"
    " (an idle session?)"
)
_INPUTS = "inputs"
"""Key, within the stored report, of what a replay needs and the report itself does not hold."""


@dataclass(frozen=True)
class CycleResult:
    """What came of one call of `run_cycle`."""

    outcome: CycleOutcome
    reason: str
    last: Cycle | None
    """the newest recorded cycle of the population: this one, unless it was skipped"""
    succeeded_at: datetime | None
    """when the population was last known to be watched; None: it could not be judged now"""


@dataclass(frozen=True)
class _Subject:
    """What a cycle judges, read in an order in which no change of the head goes unnoticed."""

    model: Model
    calibration_set_id: int
    head: HeadRecord
    sequence: int
    """newest activation in (model, environment); 0: none"""


def run_cycle(
    store: Store,
    settings: Settings,
    model: Model,
    environment: str,
    due_at: datetime,
    *,
    quantifiers: FittedQuantifiers | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> CycleResult:
    """Judge the newest window and, if it is worth it, publish a refitted head for this environment.

    Calling it again with the same `due_at` does nothing. Everything it writes, it writes in one transaction.

    Args:
        store: log, heads and cycles.
        settings: window, method and policy.
        model: whose predictions.
        environment: from where; the only place whose head may change.
        due_at: multiple of the interval (UTC) for which this cycle runs.
        quantifiers: kept between calls so that a quantifier is fitted once.
        stopping: asked before the transaction; True abandons the cycle.

    Raises:
        UnavailableError: the database does not answer.
        InvalidInputError: the window or the calibration set cannot be judged.
        NotFoundError: an artifact is gone.
    """
    last = store.cycles.last(model.id, environment)
    if last is not None and due_at <= last.due_at <= due_at + interval_of(settings.cycle_interval_seconds):
        # The other monitor may be one tick ahead; a cycle that is further ahead comes from a clock that was wrong.
        return CycleResult("skip", "the cycle that was due has run", last, last.finished_at)
    horizon = store.predictions.horizon()
    if last is not None and not store.predictions.count_between(model.id, environment, last.horizon, horizon):
        return _nothing_to_judge("no new prediction", store, model, environment, horizon, last)
    subject = _subject(store, model, environment)
    if isinstance(subject, str):
        return CycleResult("skip", subject, last, None)
    started_at = datetime.now(UTC)
    since = due_at - settings.window_age
    window = store.predictions.window(
        model.id, environment, limit=settings.window_samples, since=since, horizon=horizon
    )
    if not window.ids:
        return _nothing_to_judge(
            "no prediction within the window's age", store, model, environment, horizon, last
        )
    report = adapt(
        (quantifiers or FittedQuantifiers()).get(
            store, model, subject.calibration_set_id, settings.quantifier
        ),
        window.logits,
        subject.head.head,
        AdaptationPolicy(**settings.policy.model_dump()),
        groups=window.groups,
        method=settings.quantifier,
        rng=_seed(model, environment, due_at),
    )
    if stopping():
        return CycleResult("skip", "the monitor is stopping", last, None)
    inputs = {"calibration_set": subject.calibration_set_id, "quantifier": settings.quantifier}
    cycle = Cycle(
        id=new_prediction_id(),
        model_id=model.id,
        environment=environment,
        due_at=due_at,
        started_at=started_at,
        finished_at=datetime.now(UTC),
        outcome=report.outcome,
        report={**report.to_document(), _INPUTS: inputs},
        window_samples=len(window.ids),
        horizon=window.horizon,
        head_version=subject.head.version,
        published_version=None,
    )
    return _finish(store, cycle, report, window, subject)


def replay(store: Store, cycle_id: UUID) -> AdaptationReport:
    """Judge the window of a past cycle again from what is stored; equal to the report that the cycle recorded.

    Raises:
        NotFoundError: there is no such cycle, or what it looked at is not stored any more.
    """
    cycle = store.cycles.get(cycle_id)
    registry = store.registry()
    if registry is None or cycle.model_id not in registry.models:
        raise NotFoundError("the model of this cycle is gone.", field="cycle")
    model = registry.models[cycle.model_id]
    window = store.predictions.window(
        model.id, cycle.environment, limit=cycle.window_samples, since=EPOCH, horizon=cycle.horizon
    )
    if len(window.ids) != cycle.window_samples:
        raise NotFoundError(
            f"the log holds only {len(window.ids)} of the {cycle.window_samples} predictions of this cycle.",
            field="cycle",
            mend="Predictions older than the retention time are deleted; newer cycles can be replayed.",
        )
    recorded, inputs = report_of(cycle), cycle.report[_INPUTS]
    report = adapt(
        FittedQuantifiers().get(store, model, inputs["calibration_set"], inputs["quantifier"]),
        window.logits,
        store.heads.get(model.reference, cycle.head_version).head,
        recorded.policy,
        groups=window.groups,
        method=inputs["quantifier"],
        rng=recorded.seed,
    )
    if report.window_digest != recorded.window_digest:
        raise NotFoundError(
            "the log does not hold the predictions that this cycle looked at any more.",
            field="cycle",
            mend="Some were deleted since; newer cycles can be replayed.",
        )
    return report


def report_of(cycle: Cycle) -> AdaptationReport:
    """The report that a cycle recorded.

    Raises:
        InvalidInputError: another version of the product wrote it, in a form that this one cannot read.
    """
    return AdaptationReport.from_document(
        {key: value for key, value in cycle.report.items() if key != _INPUTS}
    )


def _subject(store: Store, model: Model, environment: str) -> _Subject | str:
    # The sequence before the head: if the head changes in between, the sequence is old and finishing fails.
    activations = store.heads.activations(model.reference, environment=environment)
    registry = store.registry()
    if registry is None or model.id not in registry.models:
        return "the model is gone"
    current = registry.models[model.id]
    if current.calibration_set_id is None:
        return "the model has no calibration set, so its prevalence cannot be estimated"
    try:
        head = registry.head_for(current, environment)
    except NotFoundError as error:
        return str(error)
    return _Subject(current, current.calibration_set_id, head, activations[-1].sequence if activations else 0)


def _finish(
    store: Store, cycle: Cycle, report: AdaptationReport, window: Window, subject: _Subject
) -> CycleResult:
    candidate = _to_publish(report, cycle, window)
    try:
        recorded = store.cycles.finish(cycle, candidate=candidate, expected_sequence=subject.sequence)
    except ConflictError as error:
        newest = store.cycles.last(cycle.model_id, cycle.environment)
        ran_elsewhere = newest is not None and newest.due_at >= cycle.due_at
        return CycleResult(
            "skip", str(error), newest, newest.finished_at if newest and ran_elsewhere else None
        )
    reason = " ".join(reason.text for reason in report.reasons)
    return CycleResult(report.outcome, reason, recorded, recorded.finished_at)


def _nothing_to_judge(
    reason: str, store: Store, model: Model, environment: str, horizon: int, last: Cycle | None
) -> CycleResult:
    """A success, unless predictions are there that cannot be read safely yet."""
    if store.predictions.count_between(model.id, environment, horizon, NO_END):
        return CycleResult("skip", HELD_BACK, last, None)
    return CycleResult("skip", reason, last, datetime.now(UTC))


def _seed(model: Model, environment: str, due_at: datetime) -> int:
    """The same for the same cycle, whoever runs it."""
    key = f"{model.reference}\n{environment}\n{due_at.astimezone(UTC).isoformat()}"
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest())


def _to_publish(report: AdaptationReport, cycle: Cycle, window: Window) -> PostProcessingHead | None:
    if report.outcome != "swap" or report.candidate is None:
        return None
    provenance = {
        **report.candidate.provenance,
        "cycle": str(cycle.id),
        "environment": cycle.environment,
        "window": {"first": str(window.ids[0]), "last": str(window.ids[-1]), "samples": len(window.ids)},
        "quantifier": cycle.report[_INPUTS]["quantifier"],
        "calibration_set": cycle.report[_INPUTS]["calibration_set"],
    }
    return replace(report.candidate, provenance=provenance)
