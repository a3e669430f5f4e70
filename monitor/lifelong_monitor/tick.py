"""One tick: a cycle for every population that has predictions, each on its own, and what the exporter then shows."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime

from lifelong_core.errors import LifelongError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store import Store, Visit
from lifelong_core.store.audit_anchor import AnchorFile
from lifelong_core.store.monitors import describe_disagreements
from lifelong_core.store.records import Cycle, Model, Registry
from lifelong_monitor.affected import SwapCounter
from lifelong_monitor.cycle import CycleResult, run_cycle
from lifelong_monitor.exporter import Exporter
from lifelong_monitor.figures import figures_of
from lifelong_monitor.quantifiers import FittedQuantifiers
from lifelong_monitor.status import PopulationStatus, RealisedPerformance, ServingHead
from lifelong_monitor.validation import RealisedPerformances
from lifelong_monitor.words import describe, describe_affected

log = logging.getLogger(__name__)

FOLD_SECONDS = 20.0
"""A tick spends no more on summaries than this, and one step for each population; the rest comes right after it. Some
50,000 rows are folded in a second."""

RETENTION_SECONDS = 20.0
"""A tick spends no more on deleting what is too old than this."""
RETENTION_AGAIN_SECONDS = 5.0


class Ticker:
    """Runs the cycles of all populations; remembers what must survive from one tick to the next."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        exporter: Exporter,
        *,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._settings = settings
        self._exporter = exporter
        self._stopping = stopping
        self._quantifiers = FittedQuantifiers()
        self._registry: Registry | None = None
        self._partitioned_on: date | None = None
        self._fold_until = 0.0
        self._again_in: float | None = None
        self._first_seen: dict[tuple[int, str], datetime] = {}
        self._last_success: dict[tuple[int, str], datetime] = {}
        self._visits: dict[tuple[int, str], Visit] = {}
        self._skip_reasons: dict[tuple[int, str], str] = {}
        self._realised = RealisedPerformances(store)
        self._swap_counter = SwapCounter(store, stopping=stopping)
        self._unknown_environments: list[str] = []
        self._disagreements: list[str] = []
        self._anchor = AnchorFile(settings.audit_anchor_file)
        self._anchor_problem: str | None = None
        self._left_out: dict[tuple[int, str, str], tuple[str, ...]] = {}

    def tick(self, now: datetime, due_at: datetime) -> float | None:
        """Run the cycles that are due.

        Returns:
            Seconds after which work that was left should be gone on with, sooner than the next cycle is due; None:
            none was left.

        Raises:
            UnavailableError: the database does not answer.
        """
        self._ensure_partitions(now.date())
        self._warn_of_unknown_environments()
        self._warn_of_disagreements()
        registry = self._current_registry()
        populations = [
            (registry.models[model_id], environment)
            for model_id, environment in sorted(
                self._store.predictions.populations(now - self._settings.window_age)
            )
            if model_id in registry.models
        ]
        self._exporter.forget_all_but((model.reference, environment) for model, environment in populations)
        present = {(model.id, environment) for model, environment in populations}
        self._visits = {place: visit for place, visit in self._visits.items() if place in present}
        for model, environment in populations:
            if (model.id, environment) not in self._first_seen:
                self._first_seen[model.id, environment] = now
                self._isolated(self._restore, model, environment)
        self._fold_until = time.monotonic() + FOLD_SECONDS
        self._again_in = None
        for model, environment in populations:
            if self._stopping():
                return None
            self._isolated(lambda m, e: self._visit(m, e, due_at), model, environment)
        # Before anything is deleted.
        self._count_affected(now, present)
        self._delete_expired(now.date())
        self._advance_anchor()
        return self._again_in

    @property
    def visits(self) -> tuple[Visit, ...]:
        """The newest visit of each population that has predictions."""
        return tuple(self._visits.values())

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _ensure_partitions(self, today: date) -> None:
        """The log of a PostgreSQL server needs a partition for every day; this process is always there to ask."""
        if self._partitioned_on == today:
            return
        try:
            self._store.predictions.ensure_partitions(today)
        except UnavailableError as error:
            # They are made a week ahead, so there is time; and nothing is lost without them.
            log.warning(
                "the partitions of the log could not be made, trying again at the next tick: %s", error
            )
        else:
            self._partitioned_on = today

    def _warn_of_unknown_environments(self) -> None:
        """Say once which environments the settings name that do not exist: the names may be misspelt."""
        unknown = self._settings.unknown_environments(self._store.environments.list())
        for sentence in unknown:
            if sentence not in self._unknown_environments:
                log.warning("%s", sentence)
        self._unknown_environments = unknown

    def _warn_of_disagreements(self) -> None:
        """Say once which monitors watch with different settings."""
        disagreements = describe_disagreements(self._store.monitors.list())
        for sentence in disagreements:
            if sentence not in self._disagreements:
                log.warning(
                    "%s The strictest mode of them holds. Give all monitors the same settings.", sentence
                )
        self._disagreements = disagreements

    def _count_affected(self, now: datetime, populations: Collection[tuple[int, str]]) -> None:
        """Count the decisions that swaps affect, and show the figures that are new."""
        try:
            counted, again_in = self._swap_counter.count(now)
        except Exception as error:  # a tick is for its cycles
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("affected decisions could not be counted: %s", error, exc_info=unexpected)  # noqa: TRY400
            return
        if again_in is not None:
            self._again_in = min(again_in, self._again_in or again_in)
        figures = self._store.swaps.figures([cycle.id for cycle in counted])
        models = self._current_registry().models
        for cycle in counted:
            if cycle.id in figures and cycle.model_id in models:
                said = describe_affected(figures[cycle.id], cycle)
                log.info("%s in %s: %s", models[cycle.model_id].reference, cycle.environment, said)
            if (cycle.model_id, cycle.environment) in populations:
                self._isolated(self._show_last, models[cycle.model_id], cycle.environment)

    def _show_last(self, model: Model, environment: str) -> None:
        self._show(model, environment, self._store.cycles.last(model.id, environment))

    def _delete_expired(self, today: date) -> None:
        """Delete what the settings say is old enough; what there is no time for goes right after this tick."""
        try:
            outcome = self._store.retention.delete_expired(
                self._settings.retention_for, today, pause=self._pause, seconds=RETENTION_SECONDS
            )
            jobs = self._store.jobs.delete_expired(self._settings.retention_days, today)
            self._store.console_sessions.delete_expired()
        except Exception as error:  # a tick is for its cycles
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("what is too old could not be deleted: %s", error, exc_info=unexpected)  # noqa: TRY400
            return
        if outcome.predictions or outcome.labels or outcome.requests:
            log.info(
                "deleted as too old: %d predictions (%d days as a whole), %d labels, %d request ids",
                outcome.predictions,
                len(outcome.partitions),
                outcome.labels,
                outcome.requests,
            )
        if jobs:
            log.info("deleted as too old: %d jobs", jobs)
        if not outcome.is_done:
            self._again_in = min(RETENTION_AGAIN_SECONDS, self._again_in or RETENTION_AGAIN_SECONDS)

    def _advance_anchor(self) -> None:
        """Keep the newest entry of the audit log outside the database; says once if the log is not what it was."""
        problem: str | None = None
        try:
            self._anchor.advance(self._store.audit)
        except LifelongError as error:
            problem = str(error)
            if problem != self._anchor_problem:
                log.error("the audit log cannot be anchored: %s", problem)  # noqa: TRY400 - the message says it all
        self._anchor_problem = problem

    def _pause(self, seconds: float) -> bool:
        time.sleep(seconds)
        return self._stopping()

    def _may_fold(self) -> bool:
        return time.monotonic() < self._fold_until and not self._stopping()

    def _isolated(self, step: Callable[[Model, str], None], model: Model, environment: str) -> None:
        try:
            step(model, environment)
        except Exception as error:  # whatever is wrong with one population, the others go on
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("%s in %s: error. %s", model.reference, environment, error, exc_info=unexpected)  # noqa: TRY400
            self._exporter.count_cycle(model.reference, environment, "error")
            self._note_visit(model, environment, "error", str(error) or type(error).__name__)

    def _visit(self, model: Model, environment: str, due_at: datetime) -> None:
        started = time.perf_counter()
        result = run_cycle(
            self._store,
            self._settings,
            model,
            environment,
            due_at,
            quantifiers=self._quantifiers,
            stopping=self._stopping,
            may_fold=self._may_fold,
        )
        if result.again_in is not None:
            self._again_in = min(result.again_in, self._again_in or result.again_in)
        if result.outcome != "skip":
            self._exporter.observe_duration(time.perf_counter() - started)
        self._exporter.count_cycle(model.reference, environment, result.outcome)
        self._note_success(model, environment, result.succeeded_at)
        self._note_visit(model, environment, result.outcome, result.reason)
        self._log(model, environment, result)
        self._show(model, environment, result.last)

    def _restore(self, model: Model, environment: str) -> None:
        """Show what the last recorded cycle found, so that a restart does not blank the dashboard."""
        last = self._store.cycles.last(model.id, environment)
        if last is not None:
            self._note_success(model, environment, last.finished_at)
        self._show(model, environment, last)

    def _note_success(self, model: Model, environment: str, at: datetime | None) -> None:
        """Remember when the population was last known to be watched.

        It never goes back: where another monitor holds the lease, the last cycle may be older than a visit that found
        nothing new. A time in the future comes from a clock that was set back since.
        """
        known = self._last_success.get((model.id, environment))
        if at is not None and (known is None or at > known or known > datetime.now(UTC)):
            self._last_success[model.id, environment] = at

    def _note_visit(self, model: Model, environment: str, outcome: str, reason: str) -> None:
        place = model.id, environment
        self._visits[place] = Visit(
            *place,
            visited_at=datetime.now(UTC),
            outcome=outcome,
            reason=reason,
            watched_at=self._last_success.get(place),
        )

    def _show(self, model: Model, environment: str, last: Cycle | None) -> None:
        registry = self._current_registry()
        task = registry.tasks[model.task_id]
        head = self._serving_head(registry, model, environment)
        realised = self._realised.of(task, model, environment, limit=self._settings.validation_samples)
        self._log_left_out(model, environment, realised)
        self._exporter.show(
            PopulationStatus(
                model=model.reference,
                environment=environment,
                class_names=task.class_names,
                first_seen=self._first_seen[model.id, environment],
                last_success=self._last_success.get((model.id, environment)),
                head=head,
                mode=self._store.monitors.strictest_mode(
                    environment, self._settings.policy_for(environment).mode
                ),
                pinned=registry.pin_for(model, environment) is not None,
                proposed=bool(self._store.cycles.proposals(model.id, environment)),
                cycle=None if last is None else figures_of(last, None if head is None else head.version),
                affected=(
                    None
                    if head is None
                    else self._store.swaps.of_activation(model.id, head.version, head.activated_at)
                ),
                realised=realised,
            )
        )

    def _serving_head(self, registry: Registry, model: Model, environment: str) -> ServingHead | None:
        own = registry.heads.get((model.id, environment))
        record = own or registry.heads.get((model.id, None))
        if record is None:
            return None
        # An environment may have come back to the default head: the later of the two changes counts.
        changes = self._store.heads.activations(model.reference, environment=environment)[-1:]
        if own is None:
            changes += self._store.heads.activations(model.reference, environment=None)[-1:]
        activated_at = max(change.activated_at for change in changes)
        return ServingHead(record.version, activated_at, record.head.assumed_prevalence)

    def _log(self, model: Model, environment: str, result: CycleResult) -> None:
        key = (model.id, environment)
        if result.outcome != "skip":
            class_names = self._current_registry().tasks[model.task_id].class_names
            log.info("%s in %s: %s", model.reference, environment, describe(result, class_names))
        elif self._skip_reasons.get(key) != result.reason:
            # A reason that stays is said once, not at every tick.
            log.info("%s in %s: skip. %s", model.reference, environment, result.reason)
        self._skip_reasons[key] = result.reason if result.outcome == "skip" else ""

    def _log_left_out(self, model: Model, environment: str, realised: RealisedPerformance | None) -> None:
        """Say once which recommended metrics are not watched here, and which labelled predictions they do without."""
        metrics = () if realised is None else realised.recommended.left_out
        said = [f"{metric.label}: {metric.reason}" for metric in metrics]
        self._say_once(model, environment, "recommended metrics that are not watched", said, said)
        predictions = () if realised is None else realised.left_out
        self._say_once(
            model,
            environment,
            "labelled predictions that are left out",
            [f"{some.samples} {some.reason}" for some in predictions],
            [some.reason for some in predictions],
        )

    def _say_once(
        self, model: Model, environment: str, topic: str, said: Sequence[str], reasons: Sequence[str]
    ) -> None:
        """Log what is said when its reasons have changed."""
        key = (model.id, environment, topic)
        if tuple(reasons) != self._left_out.get(key, ()):
            log.info("%s in %s: %s: %s", model.reference, environment, topic, "; ".join(said) or "none")
        self._left_out[key] = tuple(reasons)

    def _current_registry(self) -> Registry:
        known = None if self._registry is None else self._registry.revision
        self._registry = self._store.registry(known) or self._registry
        if self._registry is None:
            raise UnavailableError("the database has no registry.")
        return self._registry
