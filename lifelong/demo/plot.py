"""The demo's plot: the estimate during the shift, and cost and accuracy before and after the swap."""

from pathlib import Path

import numpy as np

from lifelong.demo.figures import Figures, Story
from lifelong.demo.images import COSTS
from lifelong.demo.traffic import Answers

COLOURS = ("#2f6f4f", "#d08c2e", "#b03a3a")
CHANGE_COLOUR = "#7a4fa3"
MOVING_AVERAGE = 100


def save_plot(story: Story, figures: Figures, path: Path) -> None:
    """Two panels over the answers in the order of their arrival, as a PNG file."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
    phases = (story.development, story.shifted, story.repeated)
    starts = np.cumsum([0] + [len(phase.answers) for phase in phases])
    _plot_prevalence(top, story, figures, phases, starts)
    _plot_cost(bottom, phases, starts)
    swapped = starts[1] + len(story.before.answers)
    for axis in (top, bottom):
        axis.axvline(starts[1], color="0.4", linestyle="--", linewidth=1)
        axis.axvline(swapped, color="0.4", linestyle=":", linewidth=1)
        axis.axvline(starts[2], color="0.4", linestyle="-", linewidth=1)
        axis.spines[["top", "right"]].set_visible(False)
    for axis, place, text in (
        (top, starts[1], "mix shifts"),
        (bottom, swapped, "head swapped"),
        (top, starts[2], "same images again"),
    ):
        axis.annotate(text, (place, 1.0), xytext=(4, 2), textcoords="offset points", fontsize=9)
    _plot_found_change(top, figures)
    _plot_affected(bottom, figures, starts[1], swapped)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plot_prevalence(
    axis, story: Story, figures: Figures, phases: tuple[Answers, ...], starts: np.ndarray
) -> None:
    arrival = np.concatenate(
        [_arrival_order(phase) + start for phase, start in zip(phases, starts, strict=False)]
    )
    moments = np.concatenate([[answer.received_at for answer in phase.answers] for phase in phases])
    for index, (name, colour) in enumerate(zip(figures.classes, COLOURS, strict=True)):
        for phase, start, end in zip(phases, starts, starts[1:], strict=False):
            label = f"{name}: true" if start == 0 else None
            axis.hlines(
                phase.prevalence[index], start, end, color=colour, alpha=0.45, linewidth=5, label=label
            )
        judged = [cycle for cycle in story.cycles if cycle.prevalence]
        places = [arrival[moments <= cycle.started_at.timestamp()].max(initial=0) for cycle in judged]
        middle = np.array([cycle.prevalence[index] for cycle in judged])
        low = middle - [cycle.low[index] for cycle in judged]
        high = np.array([cycle.high[index] for cycle in judged]) - middle
        axis.errorbar(
            np.asarray(places) + 14 * (index - 2),
            middle,
            yerr=(np.maximum(low, 0), np.maximum(high, 0)),
            fmt="o",
            markersize=4,
            capsize=3,
            color=colour,
            label=f"{name}: estimated, 95 %",
        )
    axis.set_ylim(0, 1)
    axis.set_ylabel("prevalence")
    axis.legend(ncols=3, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.25), frameon=False)


def _plot_found_change(axis, figures: Figures) -> None:
    """When the change was found to have been, with its interval, beside the true time."""
    found, low, high = (
        figures.images_before_change_found,
        figures.images_before_change_low,
        figures.images_before_change_high,
    )
    if found is None or low is None or high is None:
        return
    axis.axvspan(low, high, color=CHANGE_COLOUR, alpha=0.3, linewidth=0)
    axis.axvline(found, color=CHANGE_COLOUR, linewidth=1.2)
    axis.annotate(
        f"change found after {found} images\n({low} to {high}; true {figures.images_before_change})",
        (low, 0.85),
        xytext=(-4, 0),
        textcoords="offset points",
        fontsize=9,
        color=CHANGE_COLOUR,
        ha="right",
        va="center",
    )


def _plot_affected(axis, figures: Figures, changed: int, swapped: int) -> None:
    """The decisions between the change and the swap."""
    axis.axvspan(changed, swapped, color="0.93", linewidth=0)
    share = figures.affected_decisions / figures.compared_decisions
    axis.annotate(
        f"{figures.affected_decisions} of {figures.compared_decisions} decisions ({share:.0%})\nwould be different",
        (changed, 0.52),
        xytext=(6, 0),
        textcoords="offset points",
        fontsize=9,
        va="center",
    )


def _plot_cost(axis, phases: tuple[Answers, ...], starts: np.ndarray) -> None:
    costs = np.asarray(COSTS)
    window = np.ones(MOVING_AVERAGE) / MOVING_AVERAGE
    for phase, start in zip(phases, starts, strict=False):
        order = np.argsort([answer.received_at for answer in phase.answers])
        cost = costs[phase.labels, phase.decisions][order]
        right = (phase.labels == phase.decisions)[order].astype(float)
        place = start + np.arange(MOVING_AVERAGE - 1, len(cost))
        axis.plot(
            place,
            np.convolve(right, window, "valid"),
            color="#30507a",
            label="accuracy" if start == 0 else None,
        )
        axis.plot(
            place, np.convolve(cost, window, "valid"), color="#b03a3a", label="cost" if start == 0 else None
        )
    axis.set_ylim(0, 1)
    axis.set_ylabel(f"mean of {MOVING_AVERAGE} answers")
    axis.set_xlabel("answered predictions; every window begins with the first")
    axis.legend(fontsize=8, loc="center left", frameon=False)


def _arrival_order(phase: Answers) -> np.ndarray:
    moments = np.array([answer.received_at for answer in phase.answers])
    return moments.argsort().argsort()
