"""The demo's report in the terminal."""

import numpy as np
from rich.console import Group
from rich.panel import Panel
from rich.table import Table

from lifelong.demo.figures import EstimatedAccuracy, Figures, Story
from lifelong.demo.installation import Installation
from lifelong.rich_console import Console


def print_report(
    story: Story, figures: Figures, installation: Installation, plot: str, *, running: bool
) -> None:
    """Tables of prevalence, heads and outcome, then a summary and where to look next."""
    console = Console(markup=True)
    console.print()
    console.print(_prevalence_table(figures))
    console.print(_head_table(story, figures))
    console.print(_outcome_table(figures))
    console.print(_accuracy_table(figures))
    console.print(Panel(Group(*describe_outcome(figures)), title="What happened", title_align="left"))
    console.print(f"Plot: {plot}")
    console.print(f"Folder with log, database and images of this run: {installation.directory}")
    if running:
        console.print("\nService and monitor are still running; Ctrl-C ends them.")
        console.print(f"  API        {installation.service_url}/openapi.json")
        console.print(f"  metrics    {installation.service_url}/metrics and {installation.monitor_url}")
        console.print(f"  token      {installation.token}  (all scopes)", soft_wrap=True)
    else:
        console.print(
            "Next: `lifelong demo --keep-running` to look around, the README to bring your own model."
        )


def _prevalence_table(figures: Figures) -> Table:
    table = Table(title="Prevalence in the clinic, estimated without labels", title_justify="left")
    for column in ("class", "estimated", "95 % interval", "true"):
        table.add_column(column, justify="left" if column == "class" else "right")
    rows = zip(
        figures.classes,
        figures.estimated_prevalence,
        figures.estimated_low,
        figures.estimated_high,
        figures.true_prevalence,
        strict=True,
    )
    for name, estimate, low, high, truth in rows:
        table.add_row(name, f"{estimate:.3f}", f"{low:.3f} to {high:.3f}", f"{truth:.3f}")
    return table


def _head_table(story: Story, figures: Figures) -> Table:
    table = Table(title="Post-processing head", title_justify="left")
    for column in ("", f"before (version {figures.head_before})", f"after (version {figures.head_after})"):
        table.add_column(column)
    heads = (story.heads[figures.head_before], story.heads[figures.head_after])
    for title, attribute in (
        ("assumed prevalence", "assumed_prevalence"),
        ("temperature", "temperature"),
        ("bias", "bias"),
    ):
        table.add_row(title, *(_numbers(getattr(head, attribute)) for head in heads))
    return table


def _numbers(values: object) -> str:
    return "  ".join(f"{value:.3f}" for value in np.atleast_1d(np.asarray(values, dtype=float)))


def _outcome_table(figures: Figures) -> Table:
    title = f"The same {figures.compared_images} shifted images, sent twice"
    table = Table(title=title, title_justify="left")
    for column in ("", "plain argmax", "old head", "new head"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row(
        "accuracy",
        f"{figures.accuracy_argmax:.3f}",
        f"{figures.accuracy_before:.3f}",
        f"[bold]{figures.accuracy_after:.3f}",
    )
    table.add_row(
        "expected cost",
        f"{figures.expected_cost_argmax:.3f}",
        f"{figures.expected_cost_before:.3f}",
        f"[bold]{figures.expected_cost_after:.3f}",
    )
    return table


def _accuracy_table(figures: Figures) -> Table:
    title = (
        f"Accuracy, before and after labels of {figures.labelled} of the {figures.answered} predictions came"
    )
    table = Table(title=title, title_justify="left")
    for column in ("", "old head", "new head"):
        table.add_column(column, justify="right" if column else "left")
    estimates = (figures.estimated_accuracy_before, figures.estimated_accuracy_after)
    table.add_row("estimated without labels (95 % interval)", *(_with_interval(one) for one in estimates))
    table.add_row(
        "realised in the labelled part of these images",
        f"{figures.realised_accuracy_before:.3f}",
        f"{figures.realised_accuracy_after:.3f}",
    )
    table.add_row(
        "true, of all these images", f"{figures.accuracy_before:.3f}", f"{figures.accuracy_after:.3f}"
    )
    return table


def _with_interval(estimate: EstimatedAccuracy | None) -> str:
    if estimate is None:
        return "no estimate"
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def describe_outcome(figures: Figures) -> list[str]:
    """Describe the outcome in sentences."""
    saved = 1 - figures.expected_cost_after / figures.expected_cost_before
    return [
        f"The service was ready after {figures.seconds_to_ready:.1f} s. On the development mix it was right in "
        f"{figures.accuracy_development:.0%}; the monitor looked {figures.cycles_before_shift} times and "
        + (
            "kept the head."
            if figures.swaps_before_shift == 0
            else f"swapped {figures.swaps_before_shift} times."
        ),
        _shift_sentence(figures),
        _change_sentence(figures),
        _affected_sentence(figures),
        f"On the same images the expected cost changed by {-saved:+.0%}, the accuracy by "
        f"{100 * (figures.accuracy_after - figures.accuracy_before):+.1f} points.",
        "The monitor estimated the accuracy in the new mix before any label was there: "
        f"old head {_with_interval(figures.estimated_accuracy_before)}, new head "
        f"{_with_interval(figures.estimated_accuracy_after)}. It was {figures.accuracy_before:.3f} and "
        f"{figures.accuracy_after:.3f}.",
        f"{figures.answered} predictions were answered, {figures.logged} of them are in the log, "
        f"{figures.mixed_heads} answers mixed two heads. All in all: {figures.seconds_in_all:.0f} s.",
    ]


def _shift_sentence(figures: Figures) -> str:
    swaps = figures.swaps - figures.swaps_before_shift
    noticed = (
        "had noticed it without a label, refitted the head and swapped it."
        if swaps == 1
        else f"had made the first of {swaps} swaps, without a label."
    )
    later = f"{figures.seconds_to_swap:.1f} s later"
    return f"Then the mix shifted, in the middle of a window. {later} the monitor {noticed}"


def _change_sentence(figures: Figures) -> str:
    error = f"an error of {figures.prevalence_error_l1:.3f} (L1)"
    if figures.images_before_change_found is None:
        return f"The first cycle found no change in its window, and estimated the prevalence with {error}."
    return (
        f"The first cycle found the change after {figures.images_before_change_found} images (95 % interval "
        f"{figures.images_before_change_low} to {figures.images_before_change_high}; it was after "
        f"{figures.images_before_change}) and estimated the prevalence from there on, with {error}; the mix of the "
        f"whole window is {figures.prevalence_error_l1_whole_window:.3f} off."
    )


def _affected_sentence(figures: Figures) -> str:
    share = figures.affected_decisions / figures.compared_decisions
    return (
        f"Between the change and the swap, {figures.compared_decisions} decisions were made; the new head makes "
        f"{figures.affected_decisions} of them ({share:.0%}) otherwise. `lifelong cycles affected` lists them, most "
        "costly first, so that people can look at them again."
    )
