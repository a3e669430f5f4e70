"""Cycles and the decisions that they affect, as people read them in the terminal."""

from collections.abc import Sequence

from lifelong.commands.common import format_count
from lifelong.commands.cycles.report_text import print_outcome, print_report
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.deploy.head import ABSTAIN
from lifelong_core.entities.affected import AffectedFiguresAnswer, AffectedPredictionAnswer
from lifelong_core.entities.cycles import CycleAnswer
from lifelong_core.store.cycles.statements import (
    describe_affected,
    describe_changes,
    describe_consequences,
    readable_report,
)


def print_cycle(cycle: CycleAnswer, class_names: Sequence[str]) -> None:
    """Print population, outcome, report, the head that followed, and the affected decisions."""
    echo(f"{cycle.id}")
    echo(f"{cycle.model} in {cycle.environment}, due {cycle.due_at.isoformat(timespec='seconds')}")
    print_outcome(cycle.effect, f"{cycle.window_samples:,} samples")
    report = readable_report(cycle)
    if report is None:
        for reason in cycle.report.get("reasons", []):
            echo(f"  - {reason['text']}")
    else:
        print_report(report, class_names)
    for sentence in (cycle.report.get("inputs") or {}).get("clocks", ()):
        echo(f"Caution: {sentence}")
    for line in [*describe_consequences(cycle), *_commands(cycle)]:
        echo(line)
    if cycle.affected is not None:
        print_figures(cycle.affected, (*class_names, ABSTAIN), cycle.published_version)
        echo(f"List them: lifelong cycles affected {cycle.id}")


def _commands(cycle: CycleAnswer) -> list[str]:
    """How to go on with a head that was not published."""
    if cycle.published_version is not None or cycle.rejection is not None or cycle.outcome != "swap":
        return []
    if cycle.proposal is None:
        return [f"What the swap would have changed: lifelong cycles affected {cycle.id}"]
    return [
        "`lifelong heads proposals` lists those that can be approved.",
        f"What approving it would change: lifelong cycles affected {cycle.id}",
    ]


def print_figures(figures: AffectedFiguresAnswer, names: Sequence[str], version: int | None) -> None:
    """How many decisions differ, in which way, and what was left out.

    Args:
        figures: of the period.
        names: of the decisions, by their numbers.
        version: of the head that was published; None: it was not.
    """
    echo(wrap_text(describe_affected(figures, version)))
    for text in describe_changes(figures, names):
        echo(wrap_text(text, indent="    ", first="  - "))
    for note in _notes(figures):
        echo(wrap_text(note))


def print_affected(predictions: Sequence[AffectedPredictionAnswer], names: Sequence[str]) -> None:
    """A table of them; in a narrow terminal, head, group and true class come below each."""
    rows = [
        {
            "prediction": affected.prediction_id,
            "cost": f"{affected.expected_cost:.4g}",
            "decided": affected.label,
            "new": affected.new_label,
            "details": _details(affected, names),
        }
        for affected in predictions
    ]
    print_rows(rows, as_json=False, empty="", below="details")


def _details(affected: AffectedPredictionAnswer, names: Sequence[str]) -> str:
    parts = [f"{affected.logged_at:%Y-%m-%d %H:%M:%S}Z, head {affected.head_version}"]
    if affected.group is not None:
        parts.append(f"group {affected.group}")
    if affected.true_class is not None:
        parts.append(f"true class {names[affected.true_class]}")
    return ", ".join(parts)


def _notes(figures: AffectedFiguresAnswer) -> list[str]:
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
