"""Proposes a retraining where cycle after cycle shows that another head does not help."""

import logging
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.adaptation.retraining import Look, RetrainingReason, judge_retraining
from lifelong_core.entities.registry import Model, Registry
from lifelong_core.store import Cycle, RetrainingProposal, Store
from lifelong_core.values.errors import LifelongError
from lifelong_monitor.exporter.exporter import ProposalMetrics
from lifelong_monitor.proposals.looks import (
    HeadPerformances,
    estimable_thresholds,
    labelled_looks,
    past_cycles,
    performance_looks,
    refusal_looks,
)

log = logging.getLogger(__name__)

SHOW_SECONDS = 30.0
"""Longest time until a decision about a proposal shows."""


class RetrainingProposer:
    """Judges a population after each of its recorded cycles.

    Several monitors may judge the same population: the store keeps one proposal.

    Args:
        store: with cycles, labels and proposals.
        settings: of this monitor.
        metrics: show the open proposals.
    """

    def __init__(self, store: Store, settings: Settings, metrics: ProposalMetrics) -> None:
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self._performances = HeadPerformances(store)
        self._shown_at: float | None = None
        """by the monotonic clock; None: there is something new to show"""

    def consider(self, model: Model, cycle: Cycle, registry: Registry) -> None:
        """`judge`; a failure is logged and changes nothing: the next cycle is judged again."""
        try:
            if self.judge(model, cycle, registry):
                self._shown_at = None
        except Exception as error:  # the cycle itself is recorded and stands
            unexpected = None if isinstance(error, LifelongError) else error
            place = f"{model.reference} in {cycle.environment}"
            log.error("%s: a retraining could not be considered: %s", place, error, exc_info=unexpected)  # noqa: TRY400

    def show(self, *, is_round: bool) -> None:
        """Show the open proposals of all monitors, where they may have changed.

        Raises:
            UnavailableError: the database does not answer.
        """
        moment = time.monotonic()
        if is_round or self._shown_at is None or moment > self._shown_at + SHOW_SECONDS:
            self._metrics.show(self._store.proposals.count_open())
            self._shown_at = moment

    def judge(self, model: Model, cycle: Cycle, registry: Registry) -> list[RetrainingProposal]:
        """Propose the retrainings whose evidence the newest cycle of a population completes; record the reasons that
        are gone.

        Returns:
            The new proposals.

        Raises:
            UnavailableError: the database or the artifacts do not answer.
        """
        cycles = self._settings.retraining_proposal_cycles
        trial = registry.rollouts.get(model.task_id)
        # A candidate is judged by its trial.
        if not cycles or (trial is not None and trial.model_id == model.id):
            return []
        place = model.id, cycle.environment
        held_back = self._store.proposals.held_back(*place)
        proposals = list[RetrainingProposal]()
        for reason, looks in self._looks(model, cycle, registry):
            newest = next(looks, None)
            if newest is None:
                continue
            if newest.is_fine and reason in held_back:
                self._store.proposals.note_fine(*place, reason, newest.at)
            if reason in held_back or not newest.missed:
                continue
            need = judge_retraining(reason, chain([newest], looks), cycles)
            proposal = None if need is None else self._store.proposals.propose(*place, need)
            if proposal is not None:
                log.warning(
                    "%s in %s: proposes a retraining (%s): lifelong proposals show %s",
                    model.reference,
                    cycle.environment,
                    reason,
                    proposal.id,
                )
                proposals.append(proposal)
        return proposals

    def _looks(
        self, model: Model, cycle: Cycle, registry: Registry
    ) -> Iterator[tuple[RetrainingReason, Iterator[Look]]]:
        """Yield each reason with its looks, which are read from the store as they are needed."""
        yield "repeated_refusals", refusal_looks(past_cycles(self._store, cycle))
        task = registry.tasks[model.task_id]
        attached = self._store.recommendations.current(task.name)
        if attached is None or not attached.thresholds:
            return
        estimated = estimable_thresholds(attached)
        if estimated:
            of_cycle = partial(self._performances.of_cycle, model)
            looks = performance_looks(past_cycles(self._store, cycle), estimated, of_cycle)
            yield "estimated_performance", looks
        limit = self._settings.validation_samples
        yield "realised_performance", labelled_looks(self._store, task, model, cycle, attached, limit=limit)
