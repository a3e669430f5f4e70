"""Figures of an evaluation of strategies as tables, each with its counterpart in the thesis."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.transfer_evaluation import (
    ALWAYS,
    LEARNED,
    METRICS,
    Evaluated,
    Strategy,
    gains,
    improvements,
    mean_known,
    oriented,
)
from lifelong_core.develop.transferability import (
    max_of_top,
    mean_over_setups,
    mean_then_rank,
    rank_then_mean,
    setup_stability,
    weightedtau,
)
from lifelong_core.values.arrays import Floats

LEVELS = (2.5, 97.5)
SHOTS = (1, 3, 5)
GAIN_MEASURE, IMPROVEMENT_MEASURE = "BA", "AUROC"
"""Measures of the thesis' figure 5.7."""
REFERENCES = (LEARNED, "Manual")
"""Strategies that all others are compared with."""
COMPONENTS = ("meta metric", "scenario", "measure", "seed", "target")
Rows = Iterable[list[str]]
Figures = Mapping[str, Mapping[str, Floats]]


@dataclass(frozen=True)
class Summary:
    """A figure averaged over setups and scenarios, with the bootstrap over data sets."""

    by_scenario: Floats
    """(S,)"""
    mean: float
    low: float
    high: float


def summarise(figure: Floats, weights: Floats) -> Summary:
    """Means of a figure of shape (S, M, R, V), given bootstrap weights of the targets, shape (replicates, V)."""
    by_target = mean_known(figure.reshape(len(figure), -1, figure.shape[-1]), axis=1)
    by_scenario = mean_known(by_target, axis=1)
    replicates = np.array([mean_over_setups(one[:, np.newaxis], weights)[:, 0] for one in by_target])
    low, high = np.nanpercentile(mean_known(replicates, axis=0), LEVELS)
    return Summary(by_scenario, float(mean_known(by_scenario, axis=0)), float(low), float(high))


@dataclass(frozen=True)
class Report:
    """All figures of one evaluation."""

    evaluated: Evaluated
    strategies: Mapping[str, Strategy]
    figures: Figures
    """by strategy and metric, (S, M, R, V)"""
    averaged: Figures
    """the same with the outcomes averaged over repetitions first"""
    wins: Mapping[str, Floats]
    """by strategy, (S,)"""
    weights: Floats
    """bootstrap over data sets, (replicates, V)"""

    def summary(self, name: str, metric: str) -> Summary:
        """Of one strategy and metric."""
        return summarise(self.figures[name][metric], self.weights)

    def document(self) -> dict[str, dict[str, float]]:
        """The JSON object of the last line."""
        return {
            name: {
                **{metric: round(self.summary(name, metric).mean, 4) for metric in METRICS},
                "win_rate": round(float(mean_known(self.wins[name], axis=0)), 4),
            }
            for name in self.strategies
        }


def overall_table(report: Report) -> Rows:
    yield [
        "strategy",
        "weightedtau",
        "95 %",
        "of mean outcomes",
        "improvement",
        "95 %",
        "percentile",
        "regret",
        "win rate",
    ]
    for name in report.strategies:
        tau, gained = report.summary(name, "weightedtau"), report.summary(name, "improvement")
        yield [
            name,
            f"{tau.mean:+.3f}",
            f"{tau.low:+.3f} to {tau.high:+.3f}",
            f"{summarise(report.averaged[name]['weightedtau'], report.weights).mean:+.3f}",
            f"{100 * gained.mean:+.2f}",
            f"{100 * gained.low:+.2f} to {100 * gained.high:+.2f}",
            f"{report.summary(name, 'percentile').mean:.3f}",
            f"{report.summary(name, 'regret').mean:.3f}",
            f"{100 * mean_known(report.wins[name], axis=0):.1f}",
        ]


def difference_table(report: Report, name: str) -> Rows:
    """One strategy minus each other one, on the same draws of data sets."""
    yield [f"{name} minus", "weightedtau", "95 %", "improvement", "95 %"]
    for other in report.strategies:
        if other in (name, ALWAYS):
            continue
        cells = [other]
        for metric, scale, digits in (("weightedtau", 1, 3), ("improvement", 100, 2)):
            found = summarise(report.figures[name][metric] - report.figures[other][metric], report.weights)
            low, high = scale * found.low, scale * found.high
            cells += [f"{scale * found.mean:+.{digits}f}", f"{low:+.{digits}f} to {high:+.{digits}f}"]
        yield cells


def scenario_table(report: Report, metric: str, *, scale: float = 1, digits: int = 3) -> Rows:
    """One metric by scenario (thesis, figures 5.7 and 5.8)."""
    yield [metric, *report.evaluated.outcomes.scenarios]
    for name in report.strategies:
        by_scenario = report.summary(name, metric).by_scenario
        yield [name, *(f"{scale * value:+.{digits}f}" for value in by_scenario)]


def win_table(report: Report) -> Rows:
    """Win rates (thesis, table 5.3)."""
    yield ["win rate", *report.evaluated.outcomes.scenarios, "mean"]
    for name, rates in report.wins.items():
        yield [name, *(f"{100 * rate:.1f}" for rate in (*rates, mean_known(rates, axis=0)))]


def gain_table(report: Report) -> Rows:
    """Share of setups in which the best of k suggestions improves on no transfer, in one measure (figure 5.7)."""
    evaluated, scenarios = report.evaluated, report.evaluated.outcomes.scenarios
    yield ["gain of the best of", *(f"{scenario} {k}" for scenario in scenarios for k in SHOTS)]
    place = _measure_place(report, GAIN_MEASURE)
    for name, strategy in report.strategies.items():
        found = gains(evaluated, strategy)[:, place]
        by_shot = [_best_of(found, strategy, k) for k in SHOTS]
        yield [name, *(f"{100 * value:.0f}" for values in zip(*by_shot, strict=True) for value in values)]


def improvement_table(report: Report) -> Rows:
    """Improvement by the best of k suggestions in one measure, mean over k = 1 to 5 (figure 5.7)."""
    evaluated = report.evaluated
    yield ["improvement of the best of 1 to 5", *evaluated.outcomes.scenarios]
    place = _measure_place(report, IMPROVEMENT_MEASURE)
    for name, strategy in report.strategies.items():
        found = improvements(evaluated, strategy)[:, place]
        by_shot = np.mean([_best_of(found, strategy, k) for k in range(1, 6)], axis=0)
        yield [name, *(f"{100 * value:+.2f}" for value in by_shot)]


def _best_of(values: Floats, strategy: Strategy, k: int) -> Floats:
    """Mean by scenario of the largest of k suggestions, given values of shape (S, R, V, T)."""
    best = max_of_top(values, strategy.scores[:, np.newaxis], k)
    return mean_known(best.reshape(len(best), -1), axis=1)


def _measure_place(report: Report, measure: str) -> int:
    """Index of the thesis' measure, or the first one of the file."""
    measures = report.evaluated.outcomes.measures
    return measures.index(measure) if measure in measures else 0


def stability_table(report: Report) -> Rows:
    """Setup stability of the methods of the file (Def. 5.19)."""
    methods = report.evaluated.outcomes.methods
    figures = np.stack([oriented(report.figures[name]) for name in methods], axis=-1)
    yield list(COMPONENTS)
    yield [f"{value:.2f}" for value in setup_stability(figures)]


def agreement_table(report: Report) -> Rows:
    """weightedtau between the outcomes of two scenarios (thesis, table 5.2)."""
    scenarios, performance = report.evaluated.outcomes.scenarios, report.evaluated.performance
    yield ["weightedtau of outcomes", *scenarios]
    for name, one in zip(scenarios, performance, strict=True):
        values = [mean_known(_agreement(one, other), axis=0) for other in performance]
        yield [name, *(f"{value:+.3f}" for value in values)]


def _agreement(one: Floats, other: Floats) -> Floats:
    """weightedtau of all setups in which both scenarios are measured, over the sources of both."""
    both = np.isnan(one) | np.isnan(other)
    return weightedtau(np.where(both, np.nan, one), other).ravel()


def rank_table(report: Report) -> Rows:
    """Mean ranks over scenarios and meta metrics, with the standard deviation of the bootstrap (Def. 5.21)."""
    yield ["rank, 1 the best", "mean then rank", "+-", "rank then mean", "+-"]
    by_mean, by_rank = (
        np.mean([one for by_metric in ranks for one in by_metric], axis=0)
        for ranks in (bootstrapped_ranks(report, mean_then_rank), bootstrapped_ranks(report, rank_then_mean))
    )
    for place, name in enumerate(ranked_strategies(report)):
        cells = [name]
        for ranks in (by_mean, by_rank):
            cells += [f"{ranks[:, place].mean():.2f}", f"{ranks[:, place].std():.2f}"]
        yield cells


def bootstrapped_ranks(report: Report, rule: Callable[[Floats, Floats], Floats]) -> Floats:
    """Ranks of the strategies by `rule` in each bootstrap replicate, shape (4 metrics, S, replicates, strategies)."""
    names = ranked_strategies(report)
    figures = np.stack([oriented(report.figures[name]) for name in names], axis=-1)
    metrics, scenarios, *_, targets, strategies = figures.shape
    setups = figures.reshape(metrics, scenarios, -1, targets, strategies)
    weights = np.tile(report.weights, setups.shape[2])  # a target counts in all its setups, or in none
    return np.array([[rule(one.reshape(-1, strategies), weights) for one in row] for row in setups])


def ranked_strategies(report: Report) -> list[str]:
    """All but the ranker that never declines, which has the same order of sources as the one that does."""
    return [name for name in report.strategies if name != ALWAYS]


def tables(report: Report) -> dict[str, Rows]:
    """All tables by title."""
    shown = {
        f"Means over scenarios, measures, seeds and {report.evaluated.targets.size} targets": overall_table(
            report
        ),
        **{
            f"Differences to {name}": difference_table(report, name)
            for name in REFERENCES
            if name in report.strategies
        },
    }
    for metric, scale, digits in (
        ("weightedtau", 1, 3),
        ("improvement", 100, 2),
        ("percentile", 1, 3),
        ("regret", 1, 3),
    ):
        title = metric if metric == "weightedtau" else f"{metric}, mean of the top three"
        shown[f"{title}, by scenario"] = scenario_table(report, metric, scale=scale, digits=digits)
    return {
        **shown,
        "Win rates in percent (Def. 5.20; thesis, table 5.3)": win_table(report),
        f"Gain in percent, {GAIN_MEASURE} (thesis, figure 5.7)": gain_table(report),
        f"Improvement in points, {IMPROVEMENT_MEASURE} (thesis, figure 5.7)": improvement_table(report),
        "Setup stability of the methods (Def. 5.19)": stability_table(report),
        "Agreement of the scenarios (thesis, table 5.2)": agreement_table(report),
        "Mean rank over scenarios and meta metrics (Def. 5.21; thesis, figures 5.9 and 5.10)": rank_table(
            report
        ),
    }


def as_markdown(rows: Rows) -> str:
    """A table with columns of equal width."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
