"""The overview of all populations: what each needs from a person, in words; a few queries, whatever their number."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.adaptation.retraining import RetrainingReason
from lifelong_core.deploy.performance.acceptance import JudgedMetric, PerformanceThreshold
from lifelong_core.entities.heads import HeadPopulation, HeadRecord
from lifelong_core.entities.populations import NEEDS, Need, PopulationSummary
from lifelong_core.entities.proposals import REASONS
from lifelong_core.entities.registry import Registry
from lifelong_core.store.cycles.populations import CycleState
from lifelong_core.store.cycles.watching import HeadChange
from lifelong_core.store.log.records import Population
from lifelong_core.store.registry.heartbeats import MonitorProcess, strictest_mode
from lifelong_core.store.registry.sick_processes import last_watched, watch_patience
from lifelong_core.store.store import Store

RECENT_SHIFTS = 24
"""Cycles whose shift is shown beside the newest one."""
FRESH = timedelta(days=1)
"""A head is worth a look for so long after a swap."""

_REFUSALS = {
    "assumption_violated": "more than the prevalence has changed",
    "window_invalid": "its predictions cannot be judged",
    "calibration_changed": "the calibration set has changed",
    "calibration_unidentifiable": "the calibration set cannot tell the classes apart",
    "classes_differ": "the head has other classes than the model",
}
_KEEPS = {
    "window_too_small": "Too few predictions to judge.",
    "evidence_insufficient": "Too little evidence of a shift so far.",
    "gain_too_small": "The prevalence has shifted, but another head would not save enough.",
    "cooling_down": "The prevalence has shifted; no swap so soon after the last one.",
    "proposal_rejected": "The prevalence has shifted; a head for it was rejected.",
}
_WHY = "`lifelong doctor` says why"


@dataclass(frozen=True)
class Overview:
    """What the statements about a population rest on."""

    at: datetime
    registry: Registry
    cycles: Mapping[Population, CycleState]
    recent: Collection[Population]
    """with predictions lately"""
    retrainings: Mapping[Population, Sequence[RetrainingReason]]
    required: Mapping[int, float]
    """accuracy by task id"""
    head_changes: Mapping[HeadPopulation, HeadChange]
    monitors: Sequence[MonitorProcess]
    watched: Mapping[Population, datetime | None]
    """of `last_watched`"""
    settings: Settings

    @classmethod
    def load(cls, store: Store, settings: Settings, *, at: datetime) -> "Overview":
        """Read all of it."""
        monitors = store.monitors.list()
        return cls(
            at,
            store.registry(),
            store.population_cycles.newest(),
            frozenset(store.predictions.populations(at - settings.window_age)),
            store.proposals.open_reasons(),
            store.recommendations.required_accuracies(),
            store.watching.head_changes(),
            monitors,
            last_watched(monitors),
            settings,
        )

    @property
    def populations(self) -> list[Population]:
        """All populations of present models with predictions lately or a cycle."""
        return sorted(one for one in {*self.recent, *self.cycles} if one[0] in self.registry.models)

    def summary(self, population: Population, recent_shifts: Sequence[float] = ()) -> PopulationSummary:
        """The state of one population."""
        (model_id, environment), cycle = population, self.cycles.get(population)
        model = self.registry.models[model_id]
        head, change = self.head(population)
        figures = None if cycle is None else cycle.figures
        judged = self._judged(population)
        proposal = cycle.id if cycle is not None and self._is_open(population, cycle) else None
        need, state = self._state(population, judged, proposes=proposal is not None)
        return PopulationSummary(
            model=model.reference,
            environment=environment,
            task=self.registry.tasks[model.task_id].name,
            need=need,
            state=state,
            mode=strictest_mode(self.monitors, environment, self.settings.policy_for(environment).mode),
            head_version=None if head is None else head.version,
            head_since=None if change is None else change.at,
            pinned=self.registry.pin_for(model, environment) is not None,
            cycle=None if cycle is None else cycle.id,
            judged_at=None if cycle is None else cycle.finished_at,
            effect=None if cycle is None else cycle.effect,
            shift=figures and figures.shift,
            recent_shifts=list(recent_shifts),
            expected_cost=figures and figures.expected_cost,
            best_expected_cost=figures and figures.best_expected_cost,
            accuracy=figures and figures.accuracy,
            required_accuracy=self.required.get(model.task_id),
            acceptance=None if judged is None else judged.threshold.judge(judged.metric),
            head_proposal=proposal,
            retraining_proposals=len(self.retrainings.get(population, ())),
        )

    def head(self, population: Population) -> tuple[HeadRecord | None, HeadChange | None]:
        """The head in force and its activation; an environment without a head of its own uses the default head."""
        own, default = population, (population[0], None)
        head = self.registry.heads.get(own) or self.registry.heads.get(default)
        places: tuple[HeadPopulation, ...] = (own,) if own in self.registry.heads else (own, default)
        changes = [self.head_changes[place] for place in places if place in self.head_changes]
        newest = max(changes, key=lambda change: change.at, default=None)
        return head, newest if head is not None else None

    def _judged(self, population: Population) -> JudgedMetric | None:
        """The estimated accuracy beside the threshold of the task."""
        cycle, required = self.cycles.get(population), self.required.get(self._task_id(population))
        if cycle is None or cycle.figures.accuracy is None or required is None:
            return None
        return JudgedMetric(
            "accuracy", cycle.figures.accuracy, PerformanceThreshold(required, is_minimum=True)
        )

    def _task_id(self, population: Population) -> int:
        return self.registry.models[population[0]].task_id

    def _is_open(self, population: Population, cycle: CycleState) -> bool:
        """Whether the head that the newest cycle proposed can be approved now, as `Cycles.proposals` says."""
        head, _ = self.head(population)
        is_pinned = self.registry.pin_for(self.registry.models[population[0]], population[1]) is not None
        is_waiting = cycle.has_proposal and not cycle.is_rejected and cycle.published_version is None
        return is_waiting and not is_pinned and head is not None and head.version == cycle.head_version

    def _state(
        self, population: Population, judged: JudgedMetric | None, *, proposes: bool
    ) -> tuple[Need, str]:
        """What a person has to do, the most urgent reason first."""
        cycle = self.cycles.get(population)
        if proposes:
            return "decide", "A proposed head waits for approval."
        if retrainings := self.retrainings.get(population):
            reason = REASONS[retrainings[0]]
            return "decide", f"A retraining is proposed: {reason[0].lower()}{reason[1:]}."
        if population not in self.recent:
            return "none", "No predictions lately."
        if cycle is None:
            is_in_vain = self.watched.get(population, self.at) is None
            return ("look", f"Not watched yet; {_WHY}.") if is_in_vain else ("none", "Not judged yet.")
        acceptance = None if judged is None else judged.threshold.judge(judged.metric)
        if judged is not None and acceptance == "missed":
            return "decide", f"Below acceptance: {judged.describe()}."
        watched_at = max(cycle.finished_at, self.watched.get(population) or cycle.finished_at)
        if self.at - watched_at > watch_patience(self.monitors, self.settings.cycle_interval_seconds):
            return "look", f"Not watched since {watched_at:%Y-%m-%d %H:%M} UTC; {_WHY}."
        if cycle.outcome == "refuse":
            known = (_REFUSALS[code] for code in cycle.figures.reasons if code in _REFUSALS)
            return "look", f"The newest cycle refused: {next(known, 'see its reasons')}."
        if cycle.effect == "would swap":
            return "look", "A cycle would swap the head, but the mode is shadow."
        if judged is not None and acceptance == "at_risk":
            return "look", f"Perhaps below acceptance: {judged.describe()}."
        return self._calm_state(population, cycle)

    def _calm_state(self, population: Population, cycle: CycleState) -> tuple[Need, str]:
        codes = cycle.figures.reasons
        if "assumption_violated" in codes:
            return "look", "More than the prevalence has changed: the estimate is not reliable."
        if "head_pinned" in codes:
            return "look", "The head is pinned; the estimate fits another one."
        head, change = self.head(population)
        is_swap = change is not None and change.reason == "swap" and self.at - change.at < FRESH
        if head is not None and is_swap:
            return "look", f"A cycle put head {head.version} in force less than a day ago."
        text = next((_KEEPS[code] for code in codes if code in _KEEPS), None)
        return "none", text or "The decisions fit the prevalence."


def most_urgent_first(summary: PopulationSummary) -> tuple[int, float, str, str]:
    """Sort key: by need, then by the size of the shift, largest first."""
    size = 0.0 if summary.shift is None else summary.shift.value
    return NEEDS.index(summary.need), -size, summary.model, summary.environment
