"""Bootstrapped ranks of strategies, by scenario and meta metric (after figure 5.8 of the thesis)."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from benchmarks.transfer_evaluation import LEARNED, METRICS, RANDOM, SMALLEST
from benchmarks.transfer_report import Report, bootstrapped_ranks, ranked_strategies
from lifelong_core.develop.transferability import mean_then_rank
from lifelong_core.values.arrays import Floats

mpl.use("Agg")
import matplotlib.pyplot as plt

DOTS_PER_INCH = 110
LARGEST_BLOB = 150
"""Area in square points of a rank that every replicate gives."""
COLOURS = {LEARNED: "tab:blue", SMALLEST: "tab:orange", "Manual": "tab:orange", RANDOM: "tab:red"}


def draw_ranking(report: Report, path: Path) -> None:
    """Ranks of all strategies over bootstrap replicates (mean then rank), best mean rank on top, as a PNG file."""
    ranks = bootstrapped_ranks(report, mean_then_rank)
    names = ranked_strategies(report)
    order = np.argsort(ranks.mean(axis=(0, 1, 2)))
    scenarios = report.evaluated.outcomes.scenarios
    figure, panels = plt.subplots(
        len(scenarios),
        len(METRICS),
        figsize=(12, 3 * len(scenarios)),
        sharex=True,
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for row, scenario in enumerate(scenarios):
        for column, metric in enumerate(METRICS):
            panel = panels[row, column]
            _draw_panel(panel, ranks[column, row][:, order], [names[place] for place in order])
            if row == 0:
                panel.set_title(metric)
            if row == len(scenarios) - 1:
                panel.set_xlabel("rank")
        panels[row, 0].set_ylabel(scenario.replace("_", "-"))
    figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})
    plt.close(figure)


def _draw_panel(panel: Axes, ranks: Floats, names: list[str]) -> None:
    """Blobs: how often a strategy has a rank; a line: mean and standard deviation."""
    for height, name in enumerate(names):
        colour = COLOURS.get(name, "tab:green" if name.startswith("bKLD") else "tab:gray")
        found, counts = np.unique(ranks[:, height], return_counts=True)
        panel.scatter(
            found,
            np.full(found.size, height),
            LARGEST_BLOB * counts / len(ranks),
            colour,
            alpha=0.6,
            linewidths=0,
        )
        panel.errorbar(
            ranks[:, height].mean(),
            height,
            xerr=ranks[:, height].std(),
            fmt="x",
            color="black",
            markersize=4,
            linewidth=0.8,
        )
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xticks(range(1, len(names) + 1))
    panel.tick_params(axis="x", labelsize=7)
    panel.grid(axis="y", alpha=0.3)
