"""Proposals of retrainings: false ones where only the prevalence changes, and cycles until a degradation is proposed.

    python -m benchmarks.proposals [--json] [--quick]

Real cycles of a monitor over a store (SQLite, 3 classes, 3,000 calibration samples, default settings, but windows of
1,000). Each cycle has 250 new predictions of its population; 40 of them have labels by then. Acceptance: AC of at least
0.8. The model reaches 0.87 where all classes are alike, and more elsewhere.

- `prevalence`: a new prevalence, uniform on the simplex, every 12 cycles on average. Every proposal is false.
- `burst`: as `camera`, but for the predictions of one cycle only. Every proposal is false.
- `camera`: after 8 cycles the logits are scaled by 0.6 and one of them is 1 larger.
- `harder`: after 8 cycles the classes overlap so much that hardly more than half of the decisions are right.
- `strict`: acceptance is 0.9 instead; nothing else is wrong.

The peer counts each cycle, whether its window shares predictions with the one before or not (`overlapping`).
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np

from benchmarks.machine import describe
from benchmarks.many_populations import CLASSES, EVEN, draw, installation
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.adaptation.retraining import Look, RetrainingReason, judge_retraining
from lifelong_core.design import ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import LogEntry, Model, NewLabel, Prediction, Store, new_prediction_id
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.proposals.looks import (
    HeadPerformances,
    estimable_thresholds,
    labelled_looks,
    past_cycles,
    performance_looks,
    refusal_looks,
)
from lifelong_monitor.schedule.tick import Ticker

SEED = 0
WINDOW, NEW, LABELLED = 1000, 250, 40
BEFORE = 8
"""Cycles before a degradation."""
CHANGE = 1 / 12
"""Probability of another prevalence in a cycle."""
NUMBERS = (1, 2, 3, 5)
"""Values of the setting."""
ACCEPTED, STRICT = 0.8, 0.9
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Outcome:
    """Proposals for one reason with one value of the setting."""

    scenario: str
    reason: RetrainingReason
    cycles: int
    """value of the setting"""
    judged: int
    """cycles that were judged, in all populations"""
    proposals: int
    """each after its reason was gone, as the store counts them"""
    overlapping: int
    """the same for the peer"""
    populations: int
    proposed: float
    """share of the populations with a proposal"""
    delay: float | None
    """median number of cycles from the degradation to the proposal; None: most have none"""
    overlapping_delay: float | None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="two populations instead of 20, or of 8")
    options = parser.parse_args()
    outcomes = list[Outcome]()
    for scenario in SCENARIOS:
        found = measure(scenario, quick=options.quick)
        outcomes += found
        if not options.json:
            show(found)
    if options.json:
        report = {"benchmark": "proposals", "seed": SEED, **describe("numpy", "sqlalchemy")}
        print(json.dumps({**report, "outcomes": [asdict(one) for one in outcomes]}))


def show(outcomes: Sequence[Outcome]) -> None:
    """Print them."""
    for one in outcomes:
        print(
            f"{one.scenario:11}{one.reason:23}n={one.cycles}: {one.proposals} proposals in {one.judged} cycles"
            f" (overlapping {one.overlapping}), in {one.proposed:.0%} of {one.populations} populations, after"
            f" {one.delay} cycles (overlapping {one.overlapping_delay})"
        )


def measure(scenario: str, *, quick: bool) -> list[Outcome]:
    """Run one scenario and judge its cycles with each value of the setting."""
    populations, ticks = (20, 60) if scenario == "prevalence" else (8, BEFORE + 18)
    populations = 2 if quick else populations
    changes = {"window_samples": WINDOW, "retraining_proposal_cycles": 0, "validation_samples": NEW * ticks}
    with installation("sqlite", None, **changes) as (settings, store, model):
        threshold = STRICT if scenario == "strict" else ACCEPTED
        wanted = [AcceptanceThreshold(metric="AC", value=threshold)]
        store.recommendations.attach("task", _recommendation(), thresholds=wanted, actor="benchmark")
        names = [f"site-{number:02}" for number in range(populations)]
        _run(store, settings, model, SCENARIOS[scenario], names, ticks)
        histories = {
            reason: [_looks(store, settings, model, name, reason) for name in names] for reason in REASONS
        }
    begin = 0 if scenario in ("prevalence", "strict") else BEFORE
    return [
        _outcome(scenario, reason, number, histories[reason], begin)
        for reason in REASONS
        for number in NUMBERS
    ]


Source = Callable[[int, np.random.Generator, np.ndarray], LabeledLogits]
"""Predictions of a cycle, by its number, from the prevalence."""


def _prevalence(tick: int, rng: np.random.Generator, prevalence: np.ndarray) -> LabeledLogits:
    del tick
    if rng.random() < CHANGE:
        prevalence[:] = rng.dirichlet(np.ones(CLASSES))
    return draw(prevalence.tolist(), NEW, rng)


def _camera(tick: int, rng: np.random.Generator, prevalence: np.ndarray) -> LabeledLogits:
    drawn = draw(prevalence.tolist(), NEW, rng)
    if tick < BEFORE:
        return drawn
    return replace(drawn, logits=0.6 * drawn.logits + np.eye(CLASSES, dtype=np.float32)[1])


def _burst(tick: int, rng: np.random.Generator, prevalence: np.ndarray) -> LabeledLogits:
    return (_camera if tick == BEFORE else _unchanged)(tick, rng, prevalence)


def _harder(tick: int, rng: np.random.Generator, prevalence: np.ndarray) -> LabeledLogits:
    drawn = draw(prevalence.tolist(), NEW, rng)
    return (
        drawn if tick < BEFORE else replace(drawn, logits=drawn.logits - 1.5 * np.eye(CLASSES)[drawn.labels])
    )


def _unchanged(tick: int, rng: np.random.Generator, prevalence: np.ndarray) -> LabeledLogits:
    del tick
    return draw(prevalence.tolist(), NEW, rng)


SCENARIOS: dict[str, Source] = {
    "prevalence": _prevalence,
    "burst": _burst,
    "camera": _camera,
    "harder": _harder,
    "strict": _unchanged,
}
REASONS: tuple[RetrainingReason, ...] = (
    "repeated_refusals",
    "estimated_performance",
    "realised_performance",
)


def _run(
    store: Store, settings: Settings, model: Model, source: Source, names: Sequence[str], ticks: int
) -> None:
    """Log predictions and labels of all populations, and let the monitor judge them, tick after tick."""
    rng = np.random.default_rng(SEED)
    ticker = Ticker(store, settings, Exporter(cycle_interval_seconds=3600))
    due_at = due_before(datetime.now(UTC), _HOUR) - ticks * _HOUR
    prevalences = {name: np.array(EVEN) for name in names}
    for name in names:
        store.environments.ensure(name, limit=len(names) + 1)
    for tick in range(ticks):
        for name in names:
            _log(store, model, name, source(tick, rng, prevalences[name]))
        due_at += _HOUR
        ticker.tick(due_at, due_at)


def _log(store: Store, model: Model, environment: str, drawn: LabeledLogits) -> None:
    registry = store.registry()
    record = registry.head_for(model, environment)
    decisions = record.head.apply(drawn.logits).decisions.tolist()
    rows = [
        Prediction(new_prediction_id(), model.id, environment, record.version, decision, row)
        for decision, row in zip(decisions, drawn.logits, strict=True)
    ]
    store.predictions.append([LogEntry((row,)) for row in rows])
    labelled = zip(rows[:LABELLED], drawn.labels[:LABELLED].tolist(), strict=True)
    store.labels.record([NewLabel(row.id, label) for row, label in labelled])


def _looks(
    store: Store, settings: Settings, model: Model, environment: str, reason: RetrainingReason
) -> list[Look]:
    """What the monitor saw for a reason at each cycle, newest first."""
    newest = store.cycles.last(model.id, environment)
    attached = store.recommendations.current("task")
    if newest is None or attached is None:
        raise RuntimeError("no cycle has run.")
    if reason == "repeated_refusals":
        return list(refusal_looks(past_cycles(store, newest)))
    if reason == "estimated_performance":
        of_cycle = partial(HeadPerformances(store).of_cycle, model)
        thresholds = estimable_thresholds(attached)
        return list(performance_looks(past_cycles(store, newest), thresholds, of_cycle))
    task = store.tasks.get("task")
    return list(labelled_looks(store, task, model, newest, attached, limit=settings.validation_samples))


def _outcome(
    scenario: str, reason: RetrainingReason, number: int, histories: Sequence[Sequence[Look]], begin: int
) -> Outcome:
    own = [_proposed_at(reason, looks, number) for looks in histories]
    each = [_proposed_at(reason, [replace(look, span=1) for look in looks], number) for looks in histories]
    return Outcome(
        scenario=scenario,
        reason=reason,
        cycles=number,
        judged=sum(map(len, histories)),
        proposals=sum(map(len, own)),
        overlapping=sum(map(len, each)),
        populations=len(histories),
        proposed=statistics.fmean(bool(found) for found in own),
        delay=_delay(own, begin),
        overlapping_delay=_delay(each, begin),
    )


def _proposed_at(reason: RetrainingReason, looks: Sequence[Look], number: int) -> list[int]:
    """The cycles, counted from 1, after which a retraining is proposed; once until a cycle is fine."""
    found, is_held_back = list[int](), False
    for place in reversed(range(len(looks))):
        if looks[place].is_fine:
            is_held_back = False
        elif not is_held_back and judge_retraining(reason, looks[place:], number) is not None:
            found.append(len(looks) - place)
            is_held_back = True
    return found


def _delay(proposed: Iterable[Sequence[int]], begin: int) -> float | None:
    delays = [min((at - begin for at in found if at > begin), default=float("inf")) for found in proposed]
    median = statistics.median(delays)
    return None if median == float("inf") else median


def _recommendation() -> Recommendation:
    """AC and nothing else."""
    made = recommend(
        ProblemFingerprint(
            number_of_classes=CLASSES,
            class_scores_available=True,
            decision_rule="argmax",
            unequal_severity=False,
            unequal_interest=False,
            prevalences_representative=True,
            class_imbalance=False,
            predictive_values="unimportant",
            calibration_assessment=False,
            dependent_cases=False,
            invalid_outputs=False,
        )
    )
    metric = RecommendedMetric(metric="AC", per_class=False)
    first = made.steps[0].model_copy(update={"metrics": (metric,)})
    return made.model_copy(update={"steps": (first,)})


if __name__ == "__main__":
    main()
