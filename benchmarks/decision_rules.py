"""Decision rules under prevalence shift: what a cycle states, what its decisions reach, and what a frozen head reaches.

    python -m benchmarks.decision_rules [--json] [--quick] [--rounds N] [--window N] [--seed N]

Each round draws a calibration set of each task, fits the heads of all rules on it, and runs one cycle for each rule and
prevalence on a window of the population. "Coverage": share of draws in which the value that the served head reaches in
the population lies in the interval that the cycle states for it. "Miss": distance of the reached value from the target
(of a rule without target: from the best that a cut-off reaches in the population), where the target can be reached and
is what limits the best cut-off.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import matthews_corrcoef

from benchmarks.datasets import redrawn, shared_folder, shared_task
from benchmarks.machine import describe
from lifelong_core.decision_rules.operating_points import OperatingPoints, search_cut_off
from lifelong_core.decision_rules.rules import MetricRule
from lifelong_core.deploy import (
    AdaptationPolicy,
    LabeledLogits,
    OptimisedMetric,
    PostProcessingHead,
    TargetValue,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.criterion.expected_criterion import expected_criterion
from lifelong_core.metrics import balanced_accuracy, confusion_matrix

KINDS: dict[str, MetricRule] = {
    "sensitivity": TargetValue("TPR", 0.9),
    "specificity": TargetValue("TNR", 0.9),
    "PPV": TargetValue("PPV", 0.8),
    "NPV": TargetValue("NPV", 0.97),
    "share": TargetValue("PPR", 0.2),
    "F1": OptimisedMetric("F_beta"),
    "MCC": OptimisedMetric("MCC"),
}
PREVALENCES = (0.05, 0.15, 0.3, 0.6)
PAIRED_SHARED = ("lapgyn4_surgical_actions", "cifar10_resnet50")
LARGEST_CALIBRATION = 1500
REFERENCE_CASES = 40_000
"""of each class, with which the value in a simulated population is computed"""
GROUP_SIZE = 5
BINDING = 0.01
"""a target limits the best cut-off of the population where it reaches no more than this beyond"""
COSTS = ((0.0, 1.0), (1.0, 0.0))

Row = dict[str, Any]
Draw = Callable[[int, float, np.random.Generator], LabeledLogits]


@dataclass(frozen=True)
class Population:
    """A binary task with its population."""

    name: str
    calibration: LabeledLogits
    window: Draw
    """samples of the population: number, prevalence of class 1"""
    reference: LabeledLogits
    """cases whose classes, weighted by the prevalence, are the population"""


def binormal(name: str, samples: int, spread: float, group_spread: float, seed: int) -> Population:
    """Scores of class 0 are N(0, 1), of class 1 N(1.8, spread^2); groups share a part of the deviation."""

    def draw(number: int, prevalence: float, rng: np.random.Generator) -> LabeledLogits:
        labels = (rng.random(number) < prevalence).astype(np.int64)
        noise, groups = rng.normal(size=number), None
        if group_spread:
            groups = np.arange(number) // GROUP_SIZE
            own = rng.normal(size=groups[-1] + 1)[groups]
            noise = group_spread * own + np.sqrt(1 - group_spread**2) * noise
        scores = np.where(labels == 1, 1.8 + spread * noise, noise)
        return LabeledLogits(
            np.column_stack([np.zeros(number), 2 * scores]),
            labels,
            None if groups is None else np.char.add("g", groups.astype(str)),
        )

    rng = np.random.default_rng([seed, samples, sum(name.encode())])
    reference = draw(2 * REFERENCE_CASES, 0.5, np.random.default_rng(0))
    plain = LabeledLogits(reference.logits, reference.labels)
    return Population(f"{name} {samples}", draw(samples, 0.3, rng), draw, plain)


def one_against_rest(name: str, pool: LabeledLogits, positive: int, seed: int) -> Population:
    """A class against all others: the logit is the log odds of its softmax probability."""
    rng = np.random.default_rng([seed, sum(name.encode())])
    logits = pool.logits.astype(np.float64)
    if pool.classes == 2:
        binary = pool
    else:
        others = logsumexp(np.delete(logits, positive, axis=1), axis=1)
        score = np.clip(logits[:, positive] - others, -60, 60)
        binary = LabeledLogits(
            np.column_stack([np.zeros(score.size), score]), (pool.labels == positive).astype(int)
        )
    calibration, rest = redrawn(binary, min(0.2, LARGEST_CALIBRATION / binary.samples), rng)

    def draw(number: int, prevalence: float, rng: np.random.Generator) -> LabeledLogits:
        labels = (rng.random(number) < prevalence).astype(np.int64)
        rows = np.empty(number, dtype=np.int64)
        for k in (0, 1):
            rows[labels == k] = rng.choice(np.flatnonzero(rest.labels == k), int((labels == k).sum()))
        return rest.select(rows)

    return Population(name, calibration, draw, rest)


def populations(seed: int, *, quick: bool) -> Iterator[Population]:
    """Every task with a new calibration set."""
    for samples in (500, 2000):
        yield binormal("equal variances", samples, 1.0, 0.0, seed)
        yield binormal("wide class", samples, 1.5, 0.0, seed)
        yield binormal("narrow class", samples, 0.6, 0.0, seed)
    yield binormal("groups", 1500, 1.0, 0.6, seed)
    if quick or not shared_folder().is_dir():
        return
    yield one_against_rest("hyperkvasir", shared_task("hyperkvasir_therapeutic_interventions").pool, 1, seed)
    for name in PAIRED_SHARED:
        pool = shared_task(name).pool
        for k in range(0, pool.classes, pool.classes // 4):
            yield one_against_rest(f"{name.partition('_')[0]} {k}", pool, k, seed)


def reached(head: PostProcessingHead, reference: LabeledLogits, prevalence: float, rule: MetricRule) -> float:
    """The rule's metric of a head in the population; nan where it is undefined."""
    decisions = head.apply(reference.logits).decisions
    tpr = float((decisions[reference.labels == 1] == 1).mean())
    fpr = float((decisions[reference.labels == 0] == 1).mean())
    return metric_value(rule, tpr, fpr, prevalence)


def metric_value(rule: MetricRule, tpr: float, fpr: float, prevalence: float) -> float:
    """A rule's metric from both rates, written down apart from the code that is measured."""
    tp, fp = prevalence * tpr, (1 - prevalence) * fpr
    fn, tn = prevalence - tp, 1 - prevalence - fp
    if rule.metric == "MCC":
        if min(tp + fp, fn + tn) <= 0:
            return float("nan")
        counts = np.array([tn, fp, fn, tp])
        return float(matthews_corrcoef([0, 0, 1, 1], [0, 1, 0, 1], sample_weight=counts))
    parts = {
        "TPR": (tp, tp + fn),
        "TNR": (tn, tn + fp),
        "PPV": (tp, tp + fp),
        "NPV": (tn, tn + fn),
        "PPR": (tp + fp, 1.0),
        "F_beta": (2 * tp, 2 * tp + fp + fn),
    }
    above, below = parts[rule.metric]
    return above / below if below > 0 else float("nan")


def best_reachable(
    head: PostProcessingHead, reference: LabeledLogits, prevalence: float, rule: MetricRule
) -> float:
    """What the rule's best cut-off reaches in the population."""
    scores = head.apply(reference.logits).probabilities
    cut_off = search_cut_off(rule, scores, reference.labels, np.array([1 - prevalence, prevalence]))
    flagged = scores[:, 1] >= cut_off
    return metric_value(
        rule,
        float(flagged[reference.labels == 1].mean()),
        float(flagged[reference.labels == 0].mean()),
        prevalence,
    )


def judged(population: Population, size: int, seed: int, kinds: dict[str, MetricRule]) -> Iterator[Row]:
    """One cycle for each rule and prevalence."""
    calibration, reference = population.calibration, population.reference
    fitted = quantifier("auto").fit(calibration)
    frozen = {kind: fit_head(calibration, COSTS, decision_rule=rule) for kind, rule in kinds.items()}
    at_fit = {
        kind: expected_criterion(head, calibration, head.assumed_prevalence) for kind, head in frozen.items()
    }
    for number, prevalence in enumerate(PREVALENCES):
        rng = np.random.default_rng([seed, number, sum(population.name.encode())])
        window = population.window(size, prevalence, rng)
        for kind, rule in kinds.items():
            report = adapt(
                fitted,
                window.logits,
                frozen[kind],
                AdaptationPolicy(),
                groups=window.groups,
                rng=seed,
            )
            is_swap = report.outcome == "swap" and report.candidate is not None
            served = report.candidate if is_swap else frozen[kind]
            stated = report.candidate_criterion if is_swap else report.criterion
            first = at_fit[kind]
            assert report.prevalence is not None
            assert stated is not None
            assert first is not None
            shares = np.clip(report.prevalence.prevalence, 1e-4, 1)
            refitted = fit_head(
                calibration, COSTS, target_prevalence=shares / shares.sum(), decision_rule=rule
            )
            known = fit_head(
                calibration, COSTS, target_prevalence=[1 - prevalence, prevalence], decision_rule=rule
            )
            best = best_reachable(known, reference, prevalence, rule)
            aim = rule.value if isinstance(rule, TargetValue) else best
            values = {
                name: reached(head, reference, prevalence, rule)
                for name, head in {
                    "served": served,
                    "frozen": frozen[kind],
                    "refitted": refitted,
                    "known": known,
                }.items()
            }
            yield {
                "kind": kind,
                "task": population.name,
                "prevalence": prevalence,
                "estimate": float(report.prevalence.prevalence[1]),
                "outcome": report.outcome,
                "low": stated.low,
                "value": stated.value,
                "high": stated.high,
                "reachable": stated.is_reachable,
                "first_low": first.low,
                "first_high": first.high,
                "aim": aim,
                "best": best,
                **values,
            }


def cost_rules(population: Population, size: int, seed: int) -> Iterator[Row]:
    """BA and AC by closed form and by a cut-off searched on the calibration set, both at the estimated prevalence."""
    calibration, reference = population.calibration, population.reference
    fitted = quantifier("auto").fit(calibration)
    for number, prevalence in enumerate(PREVALENCES):
        rng = np.random.default_rng([seed, number, sum(population.name.encode())])
        estimate = np.clip(fitted.prevalence(population.window(size, prevalence, rng).logits), 1e-4, 1)
        estimate = estimate / estimate.sum()
        for metric in ("BA", "AC"):
            head = fit_head(
                calibration, COSTS, target_prevalence=estimate, decision_rule=OptimisedMetric(metric)
            )
            own = head.apply(calibration.logits).probabilities[:, 1]
            scores = head.apply(reference.logits).probabilities[:, 1]
            cut_off = searched(metric, own, calibration.labels, estimate)
            best = searched(metric, scores, reference.labels, np.array([1 - prevalence, prevalence]))
            closed, found, ideal = (
                agreement(metric, decisions, reference.labels, prevalence)
                for decisions in (head.apply(reference.logits).decisions, scores >= cut_off, scores >= best)
            )
            yield {
                "metric": metric,
                "prevalence": prevalence,
                "task": population.name,
                "closed": ideal - closed,
                "searched": ideal - found,
            }


def searched(metric: str, scores: np.ndarray, labels: np.ndarray, prevalence: np.ndarray) -> float:
    """The cut-off of the best BA or AC on these samples."""
    points = OperatingPoints.of(scores)
    shares = np.array([0.5, 0.5]) if metric == "BA" else prevalence
    signed = np.where(labels == 1, 1, -1) * (shares / np.bincount(labels))[labels]
    return float(points.thresholds[points.shares(signed).argmax()])


def agreement(metric: str, decisions: np.ndarray, labels: np.ndarray, prevalence: float) -> float:
    """BA or AC of decisions in a population with this prevalence."""
    confusion = confusion_matrix(labels, decisions.astype(np.int64), classes=2)
    if metric == "BA":
        return balanced_accuracy(confusion)
    rates = np.diagonal(confusion) / confusion.sum(axis=1)
    return float(rates @ [1 - prevalence, prevalence])


def summary(rows: list[Row]) -> Row:
    """Coverage, and misses of the target or of the best that can be reached."""
    defined = [row for row in rows if not np.isnan(row["served"])]
    own = [row for row in rows if not np.isnan(row["frozen"])]
    kept = [row["first_low"] <= row["frozen"] <= row["first_high"] for row in own]
    binding = [row for row in rows if abs(row["best"] - row["aim"]) < BINDING]
    misses = {
        name: [abs(row[name] - row["aim"]) for row in binding if not np.isnan(row[name])]
        for name in ("frozen", "served", "refitted", "known")
    }
    return {
        "draws": len(rows),
        "undefined": len(rows) - len(defined),
        "coverage": _mean([row["low"] <= row["served"] <= row["high"] for row in defined]),
        "below": _mean([row["served"] < row["low"] for row in defined]),
        "width": _mean([row["high"] - row["low"] for row in defined]),
        "frozen_coverage": _mean(kept),
        "swaps": _mean([row["outcome"] == "swap" for row in rows]),
        "miss": {name: _mean(found) for name, found in misses.items()},
    }


def figures(rows: list[Row]) -> Row:
    """Summaries of each kind, by prevalence and by family of tasks."""
    found: Row = {}
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        cells = {"all": own}
        cells |= {str(p): [row for row in own if row["prevalence"] == p] for p in PREVALENCES}
        for family in dict.fromkeys(_family(row) for row in own):
            cells[family] = [row for row in own if _family(row) == family]
        found[kind] = {name: summary(some) for name, some in cells.items() if some}
    return found


def cost_figures(rows: list[Row]) -> Row:
    """Mean loss against the best cut-off of the population."""
    return {
        f"{metric} at {p}": {
            name: _mean([row[name] for row in rows if (row["metric"], row["prevalence"]) == (metric, p)])
            for name in ("closed", "searched")
        }
        for metric in ("BA", "AC")
        for p in PREVALENCES
    }


def show(found: Row, costs: Row) -> None:
    """Print the tables."""
    for kind, cells in found.items():
        print(
            f"\n{kind}: coverage (below the interval), width, coverage frozen | miss frozen, served, refitted, known"
        )
        for name, one in cells.items():
            miss = one["miss"]
            print(
                f"  {name:18s} {one['coverage']:.3f} ({one['below']:.3f}) {one['width']:.3f}"
                f" {one['frozen_coverage']:.3f} | {miss['frozen']:.3f} {miss['served']:.3f} {miss['refitted']:.3f}"
                f" {miss['known']:.3f} | {one['draws']} draws, {one['undefined']} undefined, swaps {one['swaps']:.2f}"
            )
    print("\nloss against the best cut-off: closed form, searched")
    for name, one in costs.items():
        print(f"  {name:12s} {one['closed']:.4f} {one['searched']:.4f}")


def _family(row: Row) -> str:
    return row["task"].rstrip("0123456789").strip()


def _mean(values: list[Any]) -> float:
    return round(float(np.mean(values)), 4) if values else float("nan")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    parser.add_argument("--quick", action="store_true", help="one round of the simulated tasks")
    parser.add_argument("--rounds", type=int, default=8, help="calibration sets of each task")
    parser.add_argument("--window", type=int, default=2000, help="samples in a window")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    options = parser.parse_args()
    begin = time.perf_counter()
    rows: list[Row] = []
    costs: list[Row] = []
    for seed in range(options.seed, options.seed + (1 if options.quick else options.rounds)):
        for population in populations(seed, quick=options.quick):
            rows += judged(population, options.window, seed, KINDS)
            costs += cost_rules(population, options.window, seed)
    found, by_cost = figures(rows), cost_figures(costs)
    show(found, by_cost)
    if options.json:
        document = {
            "machine": describe("numpy", "scipy"),
            "seconds": round(time.perf_counter() - begin, 1),
            "window": options.window,
            "results": found,
            "cost_rules": by_cost,
        }
        print(json.dumps(document))


if __name__ == "__main__":
    main()
