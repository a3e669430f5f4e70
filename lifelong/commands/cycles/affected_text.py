"""Affected decisions as people read them in the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lifelong.commands.common import format_count
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo

if TYPE_CHECKING:
    from lifelong_core.store.cycles.affected_counts import AffectedFigures
    from lifelong_core.store.cycles.affected_decisions import AffectedPrediction


def print_figures(figures: "AffectedFigures", names: Sequence[str], version: int | None) -> None:
    """How many decisions differ, in which way, and what was left out.

    Args:
        figures: of the period.
        names: of the decisions, by their numbers.
        version: of the head that was published; None: it was not.
    """
    counts = figures.counts
    end = f"{figures.until:%Y-%m-%d %H:%M:%S}Z" if version is None else "the swap"
    new_head = "the other head" if version is None else f"head {version}"
    echo(
        wrap_text(
            f"Of {counts.predictions:,} decisions from {figures.since:%Y-%m-%d %H:%M:%S}Z to {end}, {new_head}"
            f" would make {counts.affected:,} otherwise ({100 * counts.share:.1f} %). As made, they cost"
            f" {counts.expected_cost:.6g} more in all, {counts.mean_cost:.4g} each, by the probabilities of that head."
        )
    )
    for change in counts.changes:
        text = (
            f"{names[change.decision]} -> {names[change.new_decision]}: {change.count:,},"
            f" cost {change.expected_cost:.6g} more as made"
        )
        echo(wrap_text(text, indent="    ", first="  - "))
    for note in _notes(figures):
        echo(wrap_text(note))


def print_predictions(predictions: "Sequence[AffectedPrediction]", names: Sequence[str]) -> None:
    """A table of them; in a narrow terminal, head, group and true class come below each."""
    rows = [
        {
            "prediction": one.id,
            "cost": f"{one.expected_cost:.4g}",
            "decided": names[one.decision],
            "new": names[one.new_decision],
            "details": _details(one, names),
        }
        for one in predictions
    ]
    print_rows(rows, as_json=False, empty="", below="details")


def _details(one: "AffectedPrediction", names: Sequence[str]) -> str:
    from lifelong_core.store import logged_at

    parts = [f"{logged_at(one.id):%Y-%m-%d %H:%M:%S}Z, head {one.head_version}"]
    if one.group_hash is not None:
        parts.append(f"group {bytes(one.group_hash).hex()}")
    if one.label is not None:
        parts.append(f"true class {names[one.label]}")
    return ", ".join(parts)


def _notes(figures: "AffectedFigures") -> list[str]:
    """What the numbers do not say."""
    notes: list[str] = []
    if figures.groups is not None:
        notes.append(f"They come from {format_count(figures.groups, 'group')}.")
    if figures.quarantined:
        text = f"Left out, because they cannot be judged: {format_count(figures.quarantined, 'prediction')}."
        notes.append(text)
    if figures.other_models:
        notes.append(
            f"Not compared: {format_count(figures.other_models, 'prediction')} of other models there."
        )
    if figures.gone:
        notes.append(
            f"Deleted since they were counted, by retention or erasure: {format_count(figures.gone, 'prediction')}."
        )
    return notes
