"""One cycle of one (model, environment): read the window, judge it, record what came of it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from lifelong_core.deploy import AdaptationPolicy, AdaptationReport, PostProcessingHead, adapt
from lifelong_core.errors import ConflictError, NotFoundError
from lifelong_core.settings import Settings
from lifelong_core.store import Store, new_prediction_id
from lifelong_core.store.records import Cycle, HeadRecord, Model, Outcome, Window
from lifelong_monitor.circumstances import Service, context_of, services
from lifelong_monitor.evidence import gather
from lifelong_monitor.quantifiers import FittedQuantifiers
from lifelong_monitor.reports import Inputs, document_of, inputs_of
from lifelong_monitor.schedule import interval_of

CycleOutcome: TypeAlias = Outcome | Literal["skip"]
NO_END = 2**62
"""A commit order beyond every other."""
HELD_BACK = (
    "new predictions cannot be read safely yet: an older transaction on the database server has not ended"
    " (an idle session?)"
)


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
    served: tuple[Service, ...]
    """the heads that served there, oldest first"""
    pinned: bool


@dataclass(frozen=True)
class _Moment:
    """Which cycle it is."""

    environment: str
    due_at: datetime
    started_at: datetime
    before: Cycle | None
    """the cycle of the population that read furthest in the log"""


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
    """Judge the newest window and, if it is worth it, publish or propose a refitted head for this environment.

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
    before = store.cycles.last_read(model.id, environment)
    if before is not None and not store.predictions.count_between(
        model.id, environment, before.horizon, horizon
    ):
        return _nothing_to_judge("no new prediction", store, model, environment, horizon, last)
    subject = _subject(store, model, environment)
    if isinstance(subject, str):
        return CycleResult("skip", subject, last, None)
    started_at = datetime.now(UTC)
    window = store.predictions.window(
        model.id,
        environment,
        limit=settings.window_samples,
        since=due_at - settings.window_age,
        horizon=horizon,
    )
    if not window.ids:
        return _nothing_to_judge(
            "no prediction within the window's age", store, model, environment, horizon, last
        )
    report, inputs = _judge(
        store,
        settings,
        subject,
        window,
        _Moment(environment, due_at, started_at, before),
        quantifiers or FittedQuantifiers(),
    )
    if stopping():
        return CycleResult("skip", "the monitor is stopping", last, None)
    cycle = Cycle(
        id=new_prediction_id(),
        model_id=model.id,
        environment=environment,
        due_at=due_at,
        started_at=started_at,
        finished_at=datetime.now(UTC),
        outcome=report.outcome,
        report=document_of(report, inputs),
        window_samples=len(window.ids),
        horizon=window.horizon,
        head_version=subject.head.version,
        published_version=None,
    )
    return _finish(store, cycle, report, window, subject)


def _judge(
    store: Store,
    settings: Settings,
    subject: _Subject,
    window: Window,
    moment: _Moment,
    quantifiers: FittedQuantifiers,
) -> tuple[AdaptationReport, Inputs]:
    """The pure judgement, with all that it needs beside the window."""
    model, environment = subject.model, moment.environment
    policy = AdaptationPolicy(**settings.policy_for(environment).model_dump())
    gathered = gather(
        store,
        window,
        model.id,
        environment,
        before=moment.before,
        inputs=Inputs(subject.calibration_set_id, settings.quantifier, limit=settings.evidence_samples),
    )
    context = context_of(
        store,
        model,
        environment,
        served=subject.served,
        pinned=subject.pinned,
        at=moment.started_at,
        others_since=moment.due_at - settings.window_age if policy.pooling else None,
    )
    report = adapt(
        quantifiers.get(store, model, subject.calibration_set_id, settings.quantifier),
        window.logits,
        subject.head.head,
        policy,
        new_buckets=gathered.buckets,
        evidence=gathered.evidence,
        context=context,
        groups=window.groups,
        method=settings.quantifier,
        rng=_seed(model, environment, moment.due_at),
    )
    return report, gathered.inputs


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
    return _Subject(
        model=current,
        calibration_set_id=current.calibration_set_id,
        head=head,
        sequence=activations[-1].sequence if activations else 0,
        served=services(activations, store.heads.activations(model.reference)),
        pinned=registry.pin_for(current, environment) is not None,
    )


def _finish(
    store: Store, cycle: Cycle, report: AdaptationReport, window: Window, subject: _Subject
) -> CycleResult:
    try:
        recorded = store.cycles.finish(
            cycle,
            candidate=_candidate(report, cycle, window),
            expected_sequence=subject.sequence,
            mode=report.policy.mode,
        )
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


def _candidate(report: AdaptationReport, cycle: Cycle, window: Window) -> PostProcessingHead | None:
    """The head that the cycle wants in force, with where it comes from; None unless the outcome is swap."""
    if report.outcome != "swap" or report.candidate is None:
        return None
    inputs = inputs_of(cycle)
    provenance = {
        **report.candidate.provenance,
        "cycle": str(cycle.id),
        "environment": cycle.environment,
        "window": {"first": str(window.ids[0]), "last": str(window.ids[-1]), "samples": len(window.ids)},
        "quantifier": inputs.quantifier,
        "calibration_set": inputs.calibration_set,
    }
    return replace(report.candidate, provenance=provenance)
