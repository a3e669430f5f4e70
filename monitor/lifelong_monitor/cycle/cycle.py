"""One cycle of one (model, environment): read the window, judge it, record the result."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Self, TypeAlias, TypeGuard

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import (
    AdaptationContext,
    AdaptationPolicy,
    AdaptationReport,
    FittedQuantifier,
    LabeledLogits,
    PostProcessingHead,
    adapt,
)
from lifelong_core.deploy.adaptation.context import LabelledEvidence
from lifelong_core.entities.cycles import Cycle, Outcome
from lifelong_core.entities.registry import Model, Registry
from lifelong_core.runtime.tracing import span
from lifelong_core.store import Store, new_prediction_id
from lifelong_core.store.engine.leases import Lease
from lifelong_core.values.errors import ConflictError
from lifelong_monitor.cycle.context import load_context
from lifelong_monitor.cycle.due_times import CycleRequest, DueCycle
from lifelong_monitor.cycle.estimates import judge_acceptance, keys_of, load_wanted_estimates
from lifelong_monitor.cycle.labels import load_labelled_evidence
from lifelong_monitor.cycle.lease import hold_renewed_lease
from lifelong_monitor.cycle.new_samples import NewSamples, collect_new_samples
from lifelong_monitor.cycle.reports import Inputs, count_missed_cycles, document_of
from lifelong_monitor.cycle.subject import FittedQuantifiers, Subject, load_subject
from lifelong_monitor.cycle.traffic import load_traffic
from lifelong_monitor.cycle.window import CycleWindow, judge_window, load_window, update_summaries

CycleOutcome: TypeAlias = Outcome | Literal["skip"]
NO_END = 2**62
"""A commit order beyond every other."""
RESUME_SECONDS = 1.0
"""Pause before summaries that are not complete are continued."""
HELD_BACK = (
    "new predictions cannot be read safely yet: an older transaction on the database server has not ended"
    " (an idle session?)"
)
ELSEWHERE = "another monitor is at it"
HAS_RUN = "the cycle that was due has run"
NO_NEWS = "no new prediction"
TOO_OLD = "no prediction within the window's age"
INCOMPLETE = "the summaries of a window as large as this are still being made"


@dataclass(frozen=True)
class CycleResult:
    """The result of one call of `run_cycle`."""

    outcome: CycleOutcome
    reason: str
    last: Cycle | None
    """the newest recorded cycle of the population: this one, unless it was skipped"""
    succeeded_at: datetime | None
    """when the population was last known to be watched; None: it could not be judged now"""
    again_in: float | None = None
    """seconds after which it should be called again, though no cycle is due then; None: no need"""
    report: AdaptationReport | None = None
    """of the cycle that was recorded; None: it was skipped"""
    inputs: Inputs | None = None
    """of the cycle that was recorded; None: it was skipped"""

    @classmethod
    def of_recorded(cls, cycle: Cycle, report: AdaptationReport, inputs: Inputs) -> Self:
        """The result of a recorded cycle, with its report and inputs."""
        reason = " ".join(reason.text for reason in report.reasons)
        return cls(cycle.outcome, reason, cycle, cycle.finished_at, report=report, inputs=inputs)


@dataclass(frozen=True)
class _Moment:
    """The cycle that runs: its times, its place in the log, and its cause."""

    due_at: datetime
    started_at: datetime
    log_position: int
    """up to which the log could be read when it began"""
    last: Cycle | None
    """the recorded cycle of the population that read furthest in the log"""
    request: CycleRequest | None
    """of an operator; None: the cycle is due by itself"""


def run_cycle(
    store: Store,
    settings: Settings,
    model: Model,
    environment: str,
    due_at: datetime,
    *,
    quantifiers: FittedQuantifiers | None = None,
    due_cycle: DueCycle | None = None,
    read_registry: Callable[[], Registry | None] | None = None,
    stopping: Callable[[], bool] = lambda: False,
    may_fold: Callable[[], bool] = lambda: True,
) -> CycleResult:
    """Judge the newest window and, if it is worth it, publish or propose a refitted head for this environment.

    It holds the lease of the population, so that one monitor does this at a time, and first brings the
    window summaries up to date. Calling it again with the same `due_at` judges nothing again. What a cycle writes, it
    writes in one transaction.

    Args:
        store: log, heads and cycles.
        settings: window, method and policy.
        model: whose predictions.
        environment: from where; the only place whose head may change.
        due_at: multiple of the interval (UTC) for which this cycle runs; of an early cycle its `due_cycle`'s.
        quantifiers: kept between calls so that a quantifier is fitted once.
        due_cycle: for an early or requested cycle; None: the cycle is due by the clock.
        read_registry: gives the present registry, where the caller keeps one; None: it is read from the store.
        stopping: asked before the transaction; True abandons the cycle.
        may_fold: asked between two steps of summarising; False leaves the rest to the next call.

    Raises:
        UnavailableError: the database does not answer.
        InvalidInputError: the window or the calibration set cannot be judged.
        NotFoundError: an artifact is gone.
    """
    due_cycle = due_cycle or DueCycle.by_the_clock(settings, due_at)
    last = store.cycles.last(model.id, environment)
    if _has_run(last, due_cycle) and not store.summaries.are_behind(model.id, environment):
        return CycleResult("skip", HAS_RUN, last, last.finished_at)
    name = f"cycle/{model.id}/{environment}"
    with (
        span("cycle", model=model.reference, environment=environment) as traced,
        hold_renewed_lease(store.leases, name, settings.lease_seconds) as lease,
    ):
        if lease is None:
            watched_at = None if last is None else last.finished_at
            return CycleResult("skip", ELSEWHERE, last, watched_at, again_in=settings.lease_seconds)
        population = _Population(store, settings, model, environment, lease, read_registry or store.registry)
        result = population.visit(due_cycle, quantifiers or FittedQuantifiers(), stopping, may_fold)
        if traced is not None:
            traced.set_attribute("lifelong.outcome", result.outcome)
            if result.report is not None and result.last is not None:
                traced.set_attribute("lifelong.cycle_id", str(result.last.id))
        return result


def _has_run(last: Cycle | None, due_cycle: DueCycle) -> TypeGuard[Cycle]:
    return last is not None and due_cycle.has_run(last.due_at, datetime.now(UTC))


@dataclass(frozen=True)
class _Population:
    """A (model, environment) whose lease this process holds."""

    store: Store
    settings: Settings
    model: Model
    environment: str
    lease: Lease
    read_registry: Callable[[], Registry | None]

    def visit(
        self,
        due_cycle: DueCycle,
        quantifiers: FittedQuantifiers,
        stopping: Callable[[], bool],
        may_fold: Callable[[], bool],
    ) -> CycleResult:
        """Bring the summaries up to date, then run the cycle that is due."""
        store, place = self.store, (self.model.id, self.environment)
        # Read under the lease: another monitor may have run the cycle just before.
        last = store.cycles.last(*place)
        if due_cycle.request is not None:
            # Due now: while this process waited for the lease, a cycle with a later due time may have run.
            due_cycle = DueCycle.on_request(self.settings, due_cycle.request, datetime.now(UTC))
        log_position = store.predictions.log_position()
        new = (
            None if last is None else store.predictions.count_between(*place, last.log_position, log_position)
        )
        has_news = new != 0 or not due_cycle.new_samples
        is_due = not _has_run(last, due_cycle) and (not new or new >= due_cycle.new_samples)
        if not (is_due and has_news) and not store.summaries.are_behind(*place):
            return self._nothing_to_judge(last, log_position, is_due=is_due)
        subject = load_subject(store, self.model, self.environment, self.read_registry)
        if isinstance(subject, str):
            return CycleResult("skip", subject, last, None)
        with span("quantifier"):
            fitted = quantifiers.get(
                store, subject.model, subject.calibration_set_id, self.settings.quantifier
            )
        is_more = isinstance(fitted, FittedQuantifier) and update_summaries(
            store, self.model, self.environment, fitted, lease=self.lease, may_go_on=may_fold
        )
        if is_due and has_news:
            moment = _Moment(
                due_cycle.due_at, datetime.now(UTC), log_position, last, request=due_cycle.request
            )
            result = self._cycle(subject, fitted, moment, stopping)
        else:
            result = self._nothing_to_judge(last, log_position, is_due=is_due)
        return replace(result, again_in=RESUME_SECONDS) if is_more else result

    def _cycle(
        self,
        subject: Subject,
        fitted: FittedQuantifier | LabeledLogits,
        moment: _Moment,
        stopping: Callable[[], bool],
    ) -> CycleResult:
        with span("window"):
            taken = load_window(
                self.store,
                self.settings,
                self.model.id,
                self.environment,
                fitted,
                classes=subject.classes,
                due_at=moment.due_at,
                log_position=moment.log_position,
            )
        if taken is None:
            return CycleResult("skip", INCOMPLETE, moment.last, None)
        if not taken.samples and not taken.quarantined:
            reason = ". ".join([TOO_OLD, *self.store.health.clock_faults()])
            return self._nothing_to_judge(moment.last, moment.log_position, reason=reason)
        with span("judge", samples=taken.samples):
            report, inputs = self._judge(subject, fitted, taken, moment)
        if stopping():
            return CycleResult("skip", "the monitor is stopping", moment.last, None)
        cycle = Cycle(
            id=new_prediction_id() if moment.request is None else moment.request.cycle_id,
            model_id=self.model.id,
            environment=self.environment,
            due_at=moment.due_at,
            started_at=moment.started_at,
            finished_at=datetime.now(UTC),
            outcome=report.outcome,
            report=document_of(report, inputs),
            window_samples=taken.samples,
            log_position=taken.log_position,
            head_version=subject.head.version,
            published_version=None,
        )
        requested_by = None if moment.request is None else moment.request.actor
        with span("record"):
            return self._finish(cycle, report, inputs, taken, subject, requested_by=requested_by)

    def _judge(
        self,
        subject: Subject,
        fitted: FittedQuantifier | LabeledLogits,
        window: CycleWindow,
        moment: _Moment,
    ) -> tuple[AdaptationReport, Inputs]:
        """Load what `adapt` needs beside the window, and judge the window."""
        policy = self._policy(subject)
        wanted = load_wanted_estimates(
            self.store,
            subject.task.name,
            subject.head.head.costs,
            per_class=self.settings.estimate_single_classes,
        )
        samples = self._new_samples(subject, window, moment.last)
        context = load_context(
            self.store,
            subject.model,
            self.environment,
            served=subject.served,
            pinned=subject.pinned,
            at=moment.started_at,
            others_since=moment.due_at - self.settings.window_age if policy.pooling else None,
            labelled=self._labelled(subject, window, moment) if policy.labelled_evidence else None,
        )

        def judge(context: AdaptationContext) -> AdaptationReport:
            return adapt(
                fitted,
                window.data,
                subject.head.head,
                policy,
                new_buckets=samples.buckets,
                evidence=samples.evidence,
                context=context,
                groups=window.groups,
                times=window.times,
                method=self.settings.quantifier,
                rng=_seed(subject.model, self.environment, moment.due_at),
                performance_metrics=keys_of(wanted),
            )

        report = judge(context)
        if report.outcome == "swap":  # only then: counting the senders takes longer than judging the window
            traffic = load_traffic(
                self.store, self.model, self.environment, window, fitted, report.change_points
            )
            report = judge(replace(context, traffic=traffic))
        report = judge_acceptance(judge_window(report, window), wanted, subject.task.class_names)
        missed = count_missed_cycles(report, moment.last)
        clocks = tuple(self.store.health.clock_faults())
        return report, replace(samples.inputs, wanted=wanted, missed_cycles=missed, clocks=clocks)

    def _labelled(self, subject: Subject, window: CycleWindow, moment: _Moment) -> LabelledEvidence | None:
        return load_labelled_evidence(
            self.store,
            self.model.id,
            self.environment,
            window,
            classes=subject.classes,
            recorded_by=moment.started_at,
            limit=self.settings.validation_samples,
        )

    def _policy(self, subject: Subject) -> AdaptationPolicy:
        """The policy of this environment, in the strictest mode of all monitors, with the task's label errors."""
        policy = AdaptationPolicy(**self.settings.policy_for(self.environment).model_dump())
        rates = self.settings.label_error_rates(subject.task.name, subject.task.class_names)
        policy = replace(policy, label_error_rates=tuple(rates.values()))
        return replace(policy, mode=self.store.monitors.strictest_mode(self.environment, policy.mode))

    def _new_samples(self, subject: Subject, window: CycleWindow, last: Cycle | None) -> NewSamples:
        return collect_new_samples(
            self.store,
            self.model.id,
            self.environment,
            log_position=window.log_position,
            classes=subject.classes,
            first=window.rows,
            before=last,
            inputs=Inputs(
                subject.calibration_set_id,
                self.settings.quantifier,
                limit=self.settings.evidence_samples,
                quarantined=window.quarantined,
                hours=window.hours,
                head_changes=len(subject.served),
            ),
        )

    def _finish(
        self,
        cycle: Cycle,
        report: AdaptationReport,
        inputs: Inputs,
        taken: CycleWindow,
        subject: Subject,
        *,
        requested_by: str | None,
    ) -> CycleResult:
        try:
            recorded = self.store.cycles.finish(
                cycle,
                candidate=_candidate(report, inputs, cycle, taken),
                expected_sequence=subject.sequence,
                mode=report.mode,
                requested_by=requested_by,
                lease=self.lease,
            )
        except ConflictError as error:
            newest = self.store.cycles.last(cycle.model_id, cycle.environment)
            ran_elsewhere = newest is not None and newest.due_at >= cycle.due_at
            succeeded_at = newest.finished_at if newest and ran_elsewhere else None
            again_in = self.settings.lease_seconds if error.field == "lease" else None
            return CycleResult("skip", str(error), newest, succeeded_at, again_in)
        return CycleResult.of_recorded(recorded, report, inputs)

    def _nothing_to_judge(
        self, last: Cycle | None, log_position: int, *, is_due: bool = True, reason: str = NO_NEWS
    ) -> CycleResult:
        """A success, unless predictions are there that cannot be read safely yet."""
        if not is_due and last is not None:
            return CycleResult("skip", HAS_RUN, last, last.finished_at)
        if self.store.predictions.count_between(self.model.id, self.environment, log_position, NO_END):
            return CycleResult("skip", HELD_BACK, last, None)
        return CycleResult("skip", reason, last, datetime.now(UTC))


def _seed(model: Model, environment: str, due_at: datetime) -> int:
    """A seed that depends on the cycle alone, so that every monitor draws the same numbers."""
    key = f"{model.reference}\n{environment}\n{due_at.astimezone(UTC).isoformat()}"
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest())


def _candidate(
    report: AdaptationReport, inputs: Inputs, cycle: Cycle, taken: CycleWindow
) -> PostProcessingHead | None:
    """The head that the cycle wants in force, with where it comes from; None unless the outcome is swap."""
    if report.outcome != "swap" or report.candidate is None:
        return None
    provenance = {
        **report.candidate.provenance,
        "cycle": str(cycle.id),
        "environment": cycle.environment,
        "window": {"first": taken.first, "last": taken.last, "samples": taken.samples},
        "quantifier": inputs.quantifier,
        "calibration_set": inputs.calibration_set,
    }
    return replace(report.candidate, provenance=provenance)
