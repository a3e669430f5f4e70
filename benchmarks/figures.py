"""Figures of the benchmarks, drawn like those of the thesis' chapter 6."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

mpl.use("Agg")
import matplotlib.pyplot as plt

Row = dict[str, Any]
DOTS_PER_INCH = 110


def draw_all(rows: list[Row], folder: Path, published: Mapping[str, float]) -> None:
    """Figures like 6.3, 6.6, 6.9 and 6.10 of the thesis, as PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    _save(_prevalence(rows, published), folder / "adaptation_prevalence.png")
    _save(_calibration(rows), folder / "adaptation_calibration.png")
    _save(_decision_rules(rows), folder / "adaptation_decision_rules.png")
    _save(_generalisation(rows), folder / "adaptation_generalisation.png")


def draw_quantification(errors: list[Row], covered: list[Row], folder: Path) -> None:
    """Error of every method and coverage of the intervals, by window size."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.rcdefaults()  # QuaPy changes them
    mpl.use("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(3, 2))
    colours = iter(plt.get_cmap("tab20").colors)
    few = _common_tasks(errors)
    for method in dict.fromkeys(row["method"] for row in errors):
        if method.startswith("QuaPy") and method != "QuaPy KDEyHD":
            continue
        own = [row for row in errors if row["method"] == method and row["task"] in few]
        sizes, means = _by_size(own, "error")
        bold = method in ("auto", "QuaPy KDEyHD")
        left.plot(
            sizes, means, "o-", color=next(colours), label=method, linewidth=3 if bold else 1, markersize=3
        )
    left.set(xscale="log", yscale="log", xlabel="samples in the window", ylabel="L1 error, mean over tasks")
    _plain_ticks(left, sorted({row["size"] for row in errors}), (0.02, 0.05, 0.1, 0.2, 0.5))
    left.legend(fontsize=7, ncols=2)
    for method in dict.fromkeys(row["method"] for row in covered):
        own = [row for row in covered if row["method"] == method]
        sizes, means = _by_size(own, "covered")
        worst = [
            min(
                np.mean([row["covered"] for row in own if (row["task"], row["size"]) == (task, size)])
                for task in dict.fromkeys(row["task"] for row in own)
            )
            for size in sizes
        ]
        (line,) = right.plot(sizes, means, "o-", label=method, markersize=4)
        right.plot(sizes, worst, "v:", color=line.get_color(), markersize=4, linewidth=1)
    right.axhline(0.95, color="black", linewidth=0.8)
    right.set(xscale="log", xlabel="samples in the window", ylabel="coverage (dotted: worst task)")
    _plain_ticks(right, sorted({row["size"] for row in covered}))
    right.legend(fontsize=8)
    _save(figure, folder / "quantification.png")


def draw_changes(streams: Mapping[str, Mapping[str, Row]], delays: list[Row], folder: Path) -> None:
    """Error of every method by stream, and samples until a change is found."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 6), layout="constrained", width_ratios=(3, 2))
    places = np.arange(len(streams))[::-1]
    for method, (marker, colour) in _CHANGE_STYLES.items():
        shown = [
            (by_method[method]["error"], place)
            for by_method, place in zip(streams.values(), places, strict=True)
            if method in by_method
        ]
        label = "forgetting, best rate of each stream" if method == "forgetting" else method
        left.plot(*np.transpose(shown), marker, color=colour, label=label, markersize=6, alpha=0.8)
    left.set(xscale="log", xlabel="L1 error to the prevalence at the end of the window, mean")
    left.set_yticks(places, list(streams))
    left.set_xticks((0.02, 0.05, 0.1, 0.2, 0.5), ("0.02", "0.05", "0.1", "0.2", "0.5"))
    left.minorticks_off()
    left.grid(axis="y", alpha=0.3)
    left.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=3, frameon=False)
    for method in dict.fromkeys(row["method"] for row in delays):
        own = [row for row in delays if row["method"] == method]
        alarms = np.mean([row["false_alarms"] for row in own])
        sizes, samples = [row["size"] for row in own], [row["samples"] for row in own]
        right.plot(
            sizes,
            samples,
            "o-",
            label=f"{method} ({alarms:.1f})",
            linewidth=2.5 if method.startswith("ours") else 1,
        )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="size of the change (L1)",
        ylabel="samples until it is found, median",
        title="in brackets: false alarms in 5,000 samples",
    )
    right.title.set_fontsize(9)
    sizes = sorted({row["size"] for row in delays})
    right.set_xticks(sizes, [f"{size:g}" for size in sizes])
    right.set_yticks((20, 50, 100, 200, 500, 1000, 2000), ("20", "50", "100", "200", "500", "1,000", "2,000"))
    right.minorticks_off()
    right.legend(fontsize=8)
    _save(figure, folder / "changes.png")


_CHANGE_STYLES = {
    "whole window": ("s", "tab:grey"),
    "forgetting": ("v", "tab:orange"),
    "ruptures, l2": ("^", "tab:purple"),
    "ruptures, rbf": ("D", "tab:pink"),
    "ours, summaries": ("x", "tab:cyan"),
    "ours, rows": ("o", "tab:blue"),
    "change known": ("|", "black"),
}


def _plain_ticks(axes: Axes, sizes: list[int], heights: Sequence[float] = ()) -> None:
    """Numbers instead of powers on logarithmic axes."""
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    if heights:
        low, high = axes.get_ylim()
        shown = [height for height in heights if low <= height <= high]
        axes.set_yticks(shown, [f"{height:g}" for height in shown])
    axes.minorticks_off()


def _common_tasks(errors: list[Row]) -> set[str]:
    """Tasks on which every method was run."""
    methods = {row["method"] for row in errors}
    found = {
        task: {row["method"] for row in errors if row["task"] == task}
        for task in {row["task"] for row in errors}
    }
    return {task for task, seen in found.items() if seen == methods}


def _by_size(rows: list[Row], key: str) -> tuple[list[int], list[float]]:
    sizes = sorted({row["size"] for row in rows})
    return sizes, [float(np.mean([row[key] for row in rows if row["size"] == size])) for size in sizes]


def _prevalence(rows: list[Row], published: Mapping[str, float]) -> plt.Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(3, 4))
    methods = _methods(rows, "prevalence")
    colours = dict(zip(methods, plt.get_cmap("tab20").colors, strict=False))
    for method in methods:
        _line(left, rows, "prevalence", "L1", method, colour=colours[method], shade=False)
    left.set(xlabel="imbalance ratio", ylabel="L1 error of the prevalence", ylim=(0, None))
    boxes = right.boxplot(
        [_by_task(rows, "prevalence", "L1", method, 10.0) for method in methods],
        tick_labels=methods,
        patch_artist=True,
        medianprops={"color": "black"},
    )
    for box, method in zip(boxes["boxes"], methods, strict=True):
        box.set_facecolor(colours[method])
    marks = [published.get(method, np.nan) for method in methods]
    right.plot(range(1, len(methods) + 1), marks, "k_", markersize=14, markeredgewidth=2)
    right.set(
        yscale="log",
        ylabel="L1 error",
        title="at imbalance ratio 10 (bars: mean printed in the thesis, 30 tasks)",
    )
    right.title.set_fontsize(9)
    right.tick_params(axis="x", rotation=60)
    left.set_ylim(top=1.35 * left.get_ylim()[1])
    left.legend(fontsize=7, ncols=3, loc="upper left")
    return figure


def _calibration(rows: list[Row]) -> plt.Figure:
    figure, panels = plt.subplots(2, 2, figsize=(11, 7), layout="constrained", width_ratios=(3, 2))
    methods = _methods(rows, "calibration")
    colours = dict(zip(methods, plt.get_cmap("tab10").colors, strict=False))
    for (left, right), metric in zip(panels, ("CWCE", "Brier score"), strict=True):
        for method in methods:
            _line(left, rows, "calibration", metric, method, colour=colours[method], shade=False)
        left.set(xlabel="imbalance ratio", ylabel=metric, ylim=(0, None))
        boxes = right.boxplot(
            [_by_task(rows, "calibration", metric, method, 10.0) for method in methods],
            patch_artist=True,
            medianprops={"color": "black"},
        )
        for box, method in zip(boxes["boxes"], methods, strict=True):
            box.set_facecolor(colours[method])
        right.set(title="at imbalance ratio 10", xticks=[], ylim=(0, None))
        right.title.set_fontsize(9)
    panels[1, 0].legend(fontsize=7, ncols=2, loc="lower left")
    return figure


def _decision_rules(rows: list[Row]) -> plt.Figure:
    figure, panels = plt.subplots(2, 3, figsize=(12, 6.4), layout="constrained", sharex=True, sharey=True)
    metrics = ("accuracy", "F1", "MCC", "BA", "EC")
    colours = dict(zip(metrics, plt.get_cmap("tab10").colors, strict=False))
    for row, rule in zip(panels, ("argmax", "tuned threshold"), strict=True):
        for panel, state in zip(
            row, ("no recalibration", "recalibrated", "recalibrated (estimated)"), strict=True
        ):
            for metric in metrics:
                _line(
                    panel,
                    rows,
                    "regret",
                    metric,
                    f"{rule}, {state}",
                    colour=colours[metric],
                    label=metric,
                    style="--" if metric == "EC" else "-",
                )
            panel.set(title=f"{rule}, {state}")
            panel.title.set_fontsize(9)
        row[0].set_ylabel("best possible - achieved")
    for panel in panels[1]:
        panel.set_xlabel("imbalance ratio")
    panels[0, 0].legend(fontsize=8)
    panels[0, 0].set_ylim(bottom=0)
    return figure


def _generalisation(rows: list[Row]) -> plt.Figure:
    figure, panels = plt.subplots(
        2, 2, figsize=(11, 6.6), layout="constrained", sharey=True, width_ratios=(3, 2)
    )
    metrics = ("accuracy", "F1", "MCC", "BA", "EC", "EC (estimated)")
    colours = dict(zip(metrics, plt.get_cmap("tab10").colors, strict=False))
    for (left, right), state in zip(panels, ("no recalibration", "recalibrated"), strict=True):
        for metric in metrics:
            _line(left, rows, "generalisation", metric, state, colour=colours[metric], label=metric)
        left.set(ylabel="|development - deployment|", title=state, xlabel="imbalance ratio")
        left.title.set_fontsize(9)
        boxes = right.boxplot(
            [_by_task(rows, "generalisation", metric, state, 10.0) for metric in metrics],
            tick_labels=metrics,
            patch_artist=True,
            medianprops={"color": "black"},
        )
        for box, metric in zip(boxes["boxes"], metrics, strict=True):
            box.set_facecolor(colours[metric])
        right.set(title="at imbalance ratio 10")
        right.tick_params(axis="x", labelsize=8)
        right.title.set_fontsize(9)
    panels[0, 0].legend(fontsize=8)
    panels[0, 0].set_ylim(bottom=0)
    return figure


def _methods(rows: list[Row], step: str) -> list[str]:
    return list(dict.fromkeys(row["method"] for row in rows if row["step"] == step))


def _by_task(rows: list[Row], step: str, metric: str, method: str, ratio: float) -> list[float]:
    """Mean over repetitions for each task."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if (row["step"], row["metric"], row["method"], row["ratio"]) == (step, metric, method, ratio):
            found.setdefault(row["task"], []).append(row["value"])
    return [float(np.nanmean(values)) for values in found.values()]


def _line(
    axes: Axes,
    rows: list[Row],
    step: str,
    metric: str,
    method: str,
    *,
    colour: Sequence[float],
    label: str | None = None,
    shade: bool = True,
    style: str = "-",
) -> None:
    """Mean over tasks against the imbalance ratio; shaded by a standard deviation to either side."""
    ratios = sorted({row["ratio"] for row in rows})
    spread = [_by_task(rows, step, metric, method, ratio) for ratio in ratios]
    means, deviations = np.array([(np.mean(one), np.std(one)) for one in spread]).T
    axes.plot(ratios, means, style, color=colour, label=label or method)
    if shade:
        axes.fill_between(
            ratios, np.maximum(means - deviations, 0), means + deviations, color=colour, alpha=0.1
        )


def _save(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})
    plt.close(figure)
