"""How often the intervals that validation shows hold the true value.

    python -m benchmarks.coverage [--json] [--quick]

Data sets are drawn from populations whose truth is known: of two and four classes, of 200, 500 and 1,000 independent
cases and of 60 groups of ten, with a model that is calibrated, over-confident or not sure enough, beside another model.
Each is validated as `validate` and `compare` do, and every interval is compared with the value in the population: of
metrics that count, AUROC and AP, scoring rules, calibration errors, metrics at a target, subgroups, differences of the
two models in all and by subgroup, uncertainty-aware scores and their changes, ranks, metrics at stated prevalences,
means over groups, and targets of decision rules. A subgroup counts by its own cases. Two processes at most.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks.coverage_populations import (
    MODELS,
    SCANNERS,
    Cases,
    Scenario,
    draw,
    everyone,
    recipe_of,
    true_value,
)
from benchmarks.coverage_settings import ANSWERS, LEVEL, Row, interval_row, measure_settings
from benchmarks.machine import describe
from lifelong_core.design import ModelOutputs, ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.recommendation.document import RecommendedMetric, label_metrics
from lifelong_core.design.validation.compare import compare
from lifelong_core.design.validation.paired import PairedValidation
from lifelong_core.design.validation.uncertainty.document import (
    UncertaintyAwareScores,
    UncertaintySettings,
    predicted_uncertainties,
)
from lifelong_core.design.validation.uncertainty.scores import uncertainty_aware_scores
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.design.validation.values.metric_value import EstimatedValue
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.calibration.density import leave_one_out_bandwidth

SEED = 0

GOAL = 0.9
FEWEST = 200
"""Independent cases from which on an interval has to cover"""
REPLICATES = 400
DATA_SETS, QUICK_DATA_SETS = 100, 6
SIZES = ((200, False), (500, False), (1_000, False), (60, True))
SHARPNESS = (1.0, 1.6, 0.6)
COUNTING = (
    "AC",
    "BA",
    "CK",
    "MCC",
    "EC",
    "NEC",
    "TPR",
    "TNR",
    "PPV",
    "NPV",
    "F_beta",
    "J",
    "MK",
    "LR+",
    "LR-",
    "NB",
)
SCORES = ("AUROC", "AP", "BS", "RBS", "BSS", "NLL", "ECCL")
CALIBRATION = ("ECE", "CWCE", "TCE", "CE", "KCE", "ECE_KDE")
TARGET = RecommendedMetric(metric="TNR", per_class=True, target_class=1, parameters={"target": ("TPR", 0.8)})
UNCERTAINTY = UncertaintySettings(sigmas=(0.1, 0.3), dampings=(0.5, 2.0))


def recommendation(classes: int) -> Recommendation:
    """All metrics at once, those of one class for class 1."""
    found = recommend(ProblemFingerprint(number_of_classes=classes, **ANSWERS))
    metrics = tuple(
        RecommendedMetric(
            metric=acronym,
            per_class=METRICS[acronym].is_per_class,
            target_class=1 if METRICS[acronym].is_per_class else None,
            parameters={"threshold": 0.2} if acronym == "NB" else {},
        )
        for acronym in (*COUNTING, *SCORES, *CALIBRATION)
    )
    steps = [step.model_copy(update={"metrics": ()}) for step in found.steps]
    steps[0] = steps[0].model_copy(update={"metrics": (*metrics, TARGET)})
    return found.model_copy(update={"steps": tuple(steps)})


def measure(scenario: Scenario, seed: int) -> list[Row]:
    """Every interval of one data set."""
    cases = draw(scenario, np.random.default_rng([SEED, seed, scenarios().index(scenario)]))
    advised = recommendation(scenario.classes)
    setting = ValidationSettings.of(
        advised,
        cases.labels,
        groups=cases.groups if scenario.grouped else None,
        metadata={"scanner": np.array(SCANNERS)[cases.scanner]},
        class_names=None,
        thresholds=(),
        replicates=REPLICATES,
        level=LEVEL,
        rng=seed,
    )
    outputs = {model: ModelOutputs(probabilities=cases.probabilities[model]) for model in MODELS}
    study = PairedValidation.of(setting, ("new", outputs["new"]), ("current", outputs["current"]))
    truths = _Truths(scenario, cases, advised, seed)
    rows = [*_values(study, truths), *_differences(study, truths), *_ranks(scenario, cases, outputs, seed)]
    rows += measure_settings(scenario, cases, seed, replicates=REPLICATES)
    if scenario.classes == 2:
        rows += _uncertainty_aware(scenario, cases, seed)
    return rows


class _Truths:
    """The true values to which the intervals of one data set refer."""

    def __init__(self, scenario: Scenario, cases: Cases, advised: Recommendation, seed: int) -> None:
        self.scenario = scenario
        self.cases = cases
        self.seed = seed
        self.recipes = {
            label: recipe_of(label, metric)
            for label, metric in label_metrics(advised)
            if "target" not in metric.parameters
        }
        self.bandwidths: dict[tuple[str, int | None], float] = {}

    def value(self, model: str, one: EstimatedValue, scanner: int | None) -> float | None:
        """The value in the population; None where it has none, as a metric at a target has in a subgroup."""
        recipe = self.recipes.get(one.label)
        if recipe is None:
            cut_off = getattr(one, "cut_off", None)
            if cut_off is None or cut_off.threshold is None:
                return None
            shown = recipe_of("TNR", TARGET.model_copy(update={"parameters": {}}))
            return true_value(
                self.scenario, scanner, model, shown, one.class_index, threshold=cut_off.threshold
            )
        width = self._bandwidth(model, scanner) if recipe.acronym == "ECE_KDE" else None
        return true_value(self.scenario, scanner, model, recipe, one.class_index, bandwidth=width)

    def _bandwidth(self, model: str, scanner: int | None) -> float:
        """The one that ECE_KDE chose on these samples."""
        key = (model, scanner)
        if key not in self.bandwidths:
            rows = slice(None) if scanner is None else self.cases.scanner == scanner
            self.bandwidths[key] = leave_one_out_bandwidth(
                self.cases.labels[rows],
                self.cases.probabilities[model][rows],
                rng=np.random.default_rng([self.seed, 1]),
            )
        return self.bandwidths[key]


def _end(value: float | None) -> float:
    return np.nan if value is None else value


def _values(study: PairedValidation, truths: _Truths) -> Iterator[Row]:
    for model, found in zip(MODELS, (study.new, study.current), strict=True):
        for one in found.result.values:
            truth = truths.value(model, one, None)
            if truth is not None:
                ends = one.number("low"), one.number("high")
                yield interval_row("value", one.label, found.result.cases, *ends, truth)
        for group in found.result.subgroups:
            scanner = SCANNERS.index(group.key)
            for one in group.values:
                truth = truths.value(model, one, scanner)
                if truth is not None:
                    yield interval_row(
                        "subgroup", one.label, group.cases, one.number("low"), one.number("high"), truth
                    )


def _differences(study: PairedValidation, truths: _Truths) -> Iterator[Row]:
    cases = study.new.result.cases
    for one in study.differences():
        sides = [truths.value(model, one.document, None) for model in MODELS]
        if None not in sides:
            yield _of_difference("difference", one.document, cases, sides)
    of_group = {group.key: group.cases for group in study.new.result.subgroups}
    for one in study.subgroup_differences():
        sides = [truths.value(model, one, SCANNERS.index(one.key)) for model in MODELS]
        if None not in sides:
            yield _of_difference("subgroup difference", one, of_group[one.key], sides)


def _of_difference(kind: str, one: EstimatedValue, cases: int, sides: list[Any]) -> Row:
    return interval_row(kind, one.label, cases, one.number("low"), one.number("high"), sides[0] - sides[1])


def _ranks(scenario: Scenario, cases: Cases, outputs: dict[str, ModelOutputs], seed: int) -> Iterator[Row]:
    """Ranks by AC, BS, AUROC and ECE, where the truth has no tie."""
    labels = ("AC", "BS", "AUROC", "ECE")
    advised = recommendation(scenario.classes)
    chosen = tuple(metric for label, metric in label_metrics(advised) if label in labels)
    steps = [step.model_copy(update={"metrics": ()}) for step in advised.steps]
    steps[0] = steps[0].model_copy(update={"metrics": chosen})
    found = compare(
        advised.model_copy(update={"steps": tuple(steps)}),
        cases.labels,
        outputs,
        groups=cases.groups if scenario.grouped else None,
        replicates=REPLICATES,
        level=LEVEL,
        rng=seed,
    )
    for ranking in found.rankings:
        recipe = recipe_of(ranking.label, next(one for one in chosen if one.metric == ranking.metric))
        sign = 1 if ranking.orientation == "up" else -1
        true = {
            model: sign * true_value(scenario, None, model, recipe, ranking.class_index) for model in MODELS
        }
        for model in ranking.models:
            better = sum(value > true[model.model] for value in true.values())
            tied = sum(value == true[model.model] for value in true.values()) - 1
            place = 1 + better + tied / 2
            yield interval_row("rank", ranking.label, scenario.units, model.low, model.high, place)


def _scores(cases: Cases, resamples: Resamples) -> UncertaintyAwareScores:
    outputs = ModelOutputs(probabilities=cases.probabilities["new"], uncertainties=cases.uncertainties)
    samples = Samples.of(cases.labels, outputs, classes=2, groups=cases.groups)
    given = predicted_uncertainties(outputs, samples.is_valid, kind="other", positive=1)
    assert given is not None
    return uncertainty_aware_scores(samples, given, resamples, settings=UNCERTAINTY, positive=1, level=LEVEL)


_SCORES_OF: dict[Scenario, UncertaintyAwareScores] = {}


def _uncertainty_aware(scenario: Scenario, cases: Cases, seed: int) -> Iterator[Row]:
    if scenario not in _SCORES_OF:
        large = everyone(scenario, None)
        _SCORES_OF[scenario] = _scores(
            large, Resamples(large.groups, np.ones((3, large.groups[-1] + 1), np.uint8), 1)
        )
    true = _SCORES_OF[scenario]
    found = _scores(cases, Resamples.draw(cases.groups, replicates=REPLICATES, seed=seed))
    for curve, of_all in zip(found.curves, true.curves, strict=True):
        for low, high, truth in zip(curve.low, curve.high, of_all.estimates, strict=True):
            yield interval_row(
                "uncertainty-aware", curve.metric, scenario.units, _end(low), _end(high), truth or 0.0
            )
    for change, of_all in zip(found.changes, true.changes, strict=True):
        ends = _end(change.low), _end(change.high)
        name = f"{change.metric} by {change.of}"
        yield interval_row("uncertainty-aware change", name, scenario.units, *ends, of_all.estimate or 0.0)


def scenarios() -> list[Scenario]:
    """All sizes and calibrations, of two and four classes."""
    return [
        Scenario(f"{classes} classes, sharpness {sharpness:g}", classes, units, grouped, sharpness)
        for classes in (2, 4)
        for sharpness in SHARPNESS
        for units, grouped in SIZES
    ]


def _block(task: tuple[Scenario, int, int]) -> list[tuple[Scenario, Row]]:
    scenario, first, last = task
    return [(scenario, row) for seed in range(first, last) for row in measure(scenario, seed)]


def summarise(rows: list[tuple[Scenario, Row]]) -> list[dict[str, Any]]:
    """Coverage by kind, metric and number of independent cases, and the worst of the scenarios."""
    held: dict[tuple[str, str, str, int], dict[Scenario, list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for scenario, (kind, name, _, inside, width) in rows:
        size = f"{scenario.units} groups" if scenario.grouped else f"{scenario.units} cases"
        cases = scenario.units
        if kind.startswith(("subgroup", "target")):
            size, cases = f"half of {size}", cases // 2
        held[kind, name, size, cases][scenario].append((inside, width))
    found: list[dict[str, Any]] = []
    for (kind, name, size, cases), by_scenario in held.items():
        shown = {one: [p for p in pairs if not np.isnan(p[0])] for one, pairs in by_scenario.items()}
        every = [pair for pairs in shown.values() for pair in pairs]
        by_one = {
            one.name: float(np.mean([pair[0] for pair in pairs])) for one, pairs in shown.items() if pairs
        }
        worst = min(by_one, key=lambda name: by_one[name], default=None)
        found.append(
            {
                "kind": kind,
                "metric": name,
                "size": size,
                "independent_cases": cases,
                "coverage": float(np.mean([pair[0] for pair in every])) if every else None,
                "worst": None if worst is None else by_one[worst],
                "worst_scenario": worst,
                "width": float(np.median([pair[1] for pair in every])) if every else None,
                "shown": len(every) / sum(map(len, by_scenario.values())),
                "intervals": len(every),
            }
        )
    return found


def below_goal(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The intervals that cover less often than they should, of enough independent cases."""
    return [
        one
        for one in found
        if one["independent_cases"] >= FEWEST and one["coverage"] is not None and one["coverage"] < GOAL
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--quick", action="store_true", help="few data sets")
    parser.add_argument("--data-sets", type=int, default=None, help="data sets of each scenario")
    options = parser.parse_args()
    count = options.data_sets or (QUICK_DATA_SETS if options.quick else DATA_SETS)
    started = time.perf_counter()
    step = max(1, -(-count // 4))
    tasks = [(one, first, min(first + step, count)) for one in scenarios() for first in range(0, count, step)]
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = [row for block in pool.map(_block, tasks) for row in block]
    found = summarise(rows)
    for one in found:
        if one["coverage"] is not None:
            print(
                f"{one['kind']:24} {one['metric']:24} {one['size']:20} {one['coverage']:.3f} "
                f"worst {one['worst']:.2f} ({one['worst_scenario']}), width {one['width']:.3f}, "
                f"shown {one['shown']:.2f}"
            )
    below = below_goal(found)
    print(f"below {GOAL:g} with {FEWEST} or more independent cases: {'none' if not below else ''}")
    for one in below:
        print(f"    {one['kind']} {one['metric']}, {one['size']}: {one['coverage']:.3f}")
    seconds = time.perf_counter() - started
    print(f"{seconds:.0f} s")
    if options.json:
        report = {
            "machine": describe("numpy", "scipy"),
            "seed": SEED,
            "data_sets": count,
            "replicates": REPLICATES,
            "level": LEVEL,
            "seconds": seconds,
            "goal": GOAL,
            "below_goal": below,
            "coverage": found,
        }
        print(json.dumps(report))


if __name__ == "__main__":
    main()
