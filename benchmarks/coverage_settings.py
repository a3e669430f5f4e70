"""Coverage of intervals of validations with other settings: another class mix of use, means over groups, and the target
of a decision rule. The truths are transcriptions of the definitions.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from benchmarks.coverage_populations import GROUP_SIZE, Cases, Scenario, population
from lifelong_core.design import ModelOutputs, ProblemFingerprint, Recommendation, recommend, validate
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.result import Aggregation, ValidationResult
from lifelong_core.design.validation.values.calibration import calibration_agreement
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.values.arrays import Floats

Row: TypeAlias = tuple[str, str, int, float, float]
"""kind, metric, independent cases, 1 if the interval holds the truth (nan: there is none), and its width"""

MODEL = "new"
LEVEL = 0.95
IN_USE: Mapping[int, tuple[float, ...]] = {2: (0.9, 0.1), 4: (0.1, 0.2, 0.3, 0.4)}
COST_OF_A_MISS = 5.0
THRESHOLD = 0.2
BY_GROUP = ("TPR", "PPV", "BS")
TARGETS = (("TPR", 0.8), ("PPV", 0.6))
ANSWERS: Mapping[str, Any] = {
    "class_scores_available": True,
    "decision_rule": "argmax",
    "unequal_severity": False,
    "unequal_interest": False,
    "prevalences_representative": True,
    "class_imbalance": False,
    "class_contribution": "equal",
    "predictive_values": "unimportant",
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}


def interval_row(kind: str, name: str, cases: int, low: float, high: float, truth: float) -> Row:
    """Whether an interval holds the truth."""
    held = np.nan if np.isnan(low) or np.isnan(high) else float(low - 1e-12 <= truth <= high + 1e-12)
    return kind, name, cases, held, high - low


def measure_settings(scenario: Scenario, cases: Cases, seed: int, *, replicates: int) -> Iterator[Row]:
    """The intervals of one data set."""
    yield from _in_use(scenario, cases, seed, replicates)
    yield from _agreement(scenario, cases)
    if scenario.classes == 2:
        yield from _targets(scenario, cases, seed, replicates)
    if scenario.grouped:
        yield from _by_group(scenario, cases, seed, replicates)


def advised(classes: int, metrics: Mapping[str, Mapping[str, Any]], **answers: Any) -> Recommendation:
    """A recommendation of these metrics, those of one class for class 1."""
    found = recommend(ProblemFingerprint(number_of_classes=classes, **{**ANSWERS, **answers}))
    made = tuple(
        RecommendedMetric(
            metric=acronym,
            per_class=acronym in ("TPR", "PPV", "F_beta", "NB"),
            target_class=1 if acronym in ("TPR", "PPV", "F_beta", "NB") else None,
            parameters=dict(parameters),
        )
        for acronym, parameters in metrics.items()
    )
    steps = [step.model_copy(update={"metrics": ()}) for step in found.steps]
    steps[0] = steps[0].model_copy(update={"metrics": made})
    return found.model_copy(update={"steps": tuple(steps)})


def _validated(
    recommendation: Recommendation,
    scenario: Scenario,
    cases: Cases,
    seed: int,
    replicates: int,
    aggregation: Aggregation = "pooled",
) -> ValidationResult:
    return validate(
        recommendation,
        cases.labels,
        probabilities=cases.probabilities[MODEL],
        groups=cases.groups if scenario.grouped else None,
        replicates=replicates,
        aggregation=aggregation,
        rng=seed,
    )


def costs_of(classes: int) -> Floats:
    """Errors cost 1, but for a missed case of class 1."""
    costs = 1 - np.eye(classes)
    costs[1] *= COST_OF_A_MISS
    return costs


def _in_use(scenario: Scenario, cases: Cases, seed: int, replicates: int) -> Iterator[Row]:
    """Metrics at stated prevalences."""
    costs = tuple(tuple(row) for row in costs_of(scenario.classes).tolist())
    counting = {
        "AC": {},
        "PPV": {},
        "F_beta": {},
        "MCC": {},
        "EC": {"costs": costs},
        "NB": {"threshold": THRESHOLD},
    }
    shares = IN_USE[scenario.classes]
    other = {
        "prevalences_representative": False,
        "target_prevalences_known": True,
        "target_prevalences": shares,
    }
    found = _validated(advised(scenario.classes, counting, **other), scenario, cases, seed, replicates)
    truths = _values_in_use(scenario)
    for one in found.values:
        if one.metric in truths and one.class_index in (None, 1):
            ends = one.number("low"), one.number("high")
            yield interval_row("at stated prevalences", one.metric, scenario.units, *ends, truths[one.metric])


def _values_in_use(scenario: Scenario) -> Mapping[str, float]:
    """Metrics of the population, with each class weighted for its share in use; class 1 is positive."""
    cases, shares = population(scenario), np.array(IN_USE[scenario.classes])
    given = np.bincount(cases.labels) / cases.labels.size
    weights = (shares / given)[cases.labels]
    predicted = cases.probabilities[MODEL]
    table: Floats = np.zeros((scenario.classes,) * 2)
    np.add.at(table, (cases.labels, predicted.argmax(axis=1)), weights)
    table /= table.sum()
    true, called = table[1, 1], table[:, 1].sum()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    corrected = predicted * (shares / given)
    is_above = corrected[:, 1] >= THRESHOLD * corrected.sum(axis=1)
    hits = float(weights[is_above & (cases.labels == 1)].sum() / weights.sum())
    alarms = float(weights[is_above & (cases.labels != 1)].sum() / weights.sum())
    return {
        "AC": float(np.trace(table)),
        "PPV": float(true / called),
        "F_beta": float(2 * true / (called + rows[1])),
        "MCC": float(
            (np.trace(table) - rows @ columns) / np.sqrt((1 - rows @ rows) * (1 - columns @ columns))
        ),
        "EC": float((table * costs_of(scenario.classes)).sum()),
        "NB": hits - alarms * THRESHOLD / (1 - THRESHOLD),
    }


def _targets(scenario: Scenario, cases: Cases, seed: int, replicates: int) -> Iterator[Row]:
    """What a rule with a target reaches on the half that is judged, at the cut-off of the other half."""
    many = population(scenario)
    scores, is_own = many.probabilities[MODEL][:, 1], many.labels == 1
    for metric, value in TARGETS:
        rule = {
            "decision_rule": "target_value",
            "target_metric": metric,
            "target_value": value,
            "target_class": 1,
        }
        found = _validated(advised(scenario.classes, {"AC": {}}, **rule), scenario, cases, seed, replicates)
        decided = found.decisions
        if decided is None or decided.target is None or decided.cut_off is None:
            continue
        threshold = decided.cut_off.threshold
        is_called: NDArray[np.bool_] = scores >= (np.inf if threshold is None else threshold)
        truth = float((is_called & is_own).sum() / (is_own if metric == "TPR" else is_called).sum())
        reached = decided.target.reached
        ends = reached.number("low"), reached.number("high")
        yield interval_row("target of a rule", metric, scenario.units // 2, *ends, truth)


def _agreement(scenario: Scenario, cases: Cases) -> Iterator[Row]:
    """Calibration slope and O:E of class 1."""
    samples = Samples.of(
        cases.labels,
        ModelOutputs(probabilities=cases.probabilities[MODEL]),
        classes=scenario.classes,
        groups=cases.groups,
    )
    (found,) = (one for one in calibration_agreement(samples, level=LEVEL) if one.class_index == 1)
    truths = _agreement_of_population(scenario)
    for name, one, truth in zip(("CS", "O:E"), (found.slope, found.observed_expected), truths, strict=True):
        low, high = (np.nan if end is None else end for end in (one.low, one.high))
        yield interval_row("calibration", name, scenario.units, low, high, truth)


@cache
def _agreement_of_population(scenario: Scenario) -> tuple[float, float]:
    many = population(scenario)
    scores, is_class = many.probabilities[MODEL][:, 1], many.labels == 1
    logits = np.log(scores / (1 - scores))

    def loss(parameters: Floats) -> float:
        values = parameters[0] + parameters[1] * logits
        return float((np.logaddexp(0, values) - is_class * values).mean())

    slope = optimize.minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-7}).x[1]
    return float(slope), float(is_class.sum() / scores.sum())


def _by_group(scenario: Scenario, cases: Cases, seed: int, replicates: int) -> Iterator[Row]:
    """Means over groups."""
    recommendation = advised(
        scenario.classes, {name: {} for name in BY_GROUP}, dependent_cases=True, grouping_variable="patient"
    )
    found = _validated(recommendation, scenario, cases, seed, replicates, "by_group")
    truths = _means_over_groups(population(scenario))
    for one in found.values:
        if one.label in truths and one.class_index in (None, 1):
            ends = one.number("low"), one.number("high")
            yield interval_row("mean over groups", one.label, scenario.units, *ends, truths[one.label])


def _means_over_groups(cases: Cases) -> Mapping[str, float]:
    """Of the groups of the population, which are ten consecutive cases each."""
    predicted = cases.probabilities[MODEL]
    is_own, is_called = cases.labels == 1, predicted.argmax(axis=1) == 1
    hits, own, called = (
        one.reshape(-1, GROUP_SIZE).sum(axis=1) for one in (is_own & is_called, is_own, is_called)
    )
    distances = np.square(predicted - np.eye(predicted.shape[1])[cases.labels]).sum(axis=1)
    return {
        "TPR": float((hits[own > 0] / own[own > 0]).mean()),
        "PPV": float((hits[called > 0] / called[called > 0]).mean()),
        "BS": float(distances.mean()),
    }
