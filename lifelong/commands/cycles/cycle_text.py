"""Cycles and the decisions that they affect, as people read them in the terminal."""

from collections.abc import Sequence

from lifelong.commands.common import format_count
from lifelong.commands.cycles.report_text import print_outcome, print_report
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.deploy import AdaptationReport
from lifelong_core.deploy.head import ABSTAIN
from lifelong_core.entities.affected import AffectedFiguresAnswer, AffectedPredictionAnswer
from lifelong_core.entities.cycles import CycleAnswer
from lifelong_core.values.errors import InvalidInputError


def print_cycle(cycle: CycleAnswer, class_names: Sequence[str]) -> None:
    """Print population, outcome, report, the head that followed, and the affected decisions."""
    echo(f"{cycle.id}")
    echo(f"{cycle.model} in {cycle.environment}, due {cycle.due_at.isoformat(timespec='seconds')}")
    print_outcome(cycle.effect, f"{cycle.window_samples:,} samples")
    report = _report_of(cycle)
    if report is None:
        for reason in cycle.report.get("reasons", []):
            echo(f"  - {reason['text']}")
    else:
        print_report(report, class_names)
    for sentence in (cycle.report.get("inputs") or {}).get("clocks", ()):
        echo(f"Caution: {sentence}")
    for line in _consequences(cycle):
        echo(line)
    if cycle.affected is not None:
        print_figures(cycle.affected, (*class_names, ABSTAIN), cycle.published_version)
        echo(f"List them: lifelong cycles affected {cycle.id}")


def _report_of(cycle: CycleAnswer) -> AdaptationReport | None:
    """The report without what only a replay needs; None: another version of the product wrote it."""
    try:
        return AdaptationReport.from_document(
            {key: value for key, value in cycle.report.items() if key != "inputs"}
        )
    except InvalidInputError:
        return None


def _consequences(cycle: CycleAnswer) -> list[str]:
    """What became of the head that the cycle wanted."""
    lines = [f"Head {cycle.head_version} served meanwhile."]
    if cycle.published_version is not None:
        lines.append(f"Published head {cycle.published_version}.")
    elif cycle.rejection is not None:
        rejection = cycle.rejection
        at = rejection.rejected_at.isoformat(timespec="seconds")
        lines.append(f"Its proposal was rejected by {rejection.rejected_by} at {at}: {rejection.reason}")
    elif cycle.proposal is not None:
        lines.append("It proposes a head; `lifelong heads proposals` lists those that can be approved.")
        lines.append(f"What approving it would change: lifelong cycles affected {cycle.id}")
    elif cycle.outcome == "swap":
        lines.append("Nothing was published: the mode was shadow.")
        lines.append(f"What the swap would have changed: lifelong cycles affected {cycle.id}")
    return lines


def print_figures(figures: AffectedFiguresAnswer, names: Sequence[str], version: int | None) -> None:
    """How many decisions differ, in which way, and what was left out.

    Args:
        figures: of the period.
        names: of the decisions, by their numbers.
        version: of the head that was published; None: it was not.
    """
    end = f"{figures.until:%Y-%m-%d %H:%M:%S}Z" if version is None else "the swap"
    new_head = "the other head" if version is None else f"head {version}"
    echo(
        wrap_text(
            f"Of {figures.predictions:,} decisions from {figures.since:%Y-%m-%d %H:%M:%S}Z to {end}, {new_head}"
            f" would make {figures.affected:,} otherwise ({100 * figures.share:.1f} %). As made, they cost"
            f" {figures.expected_cost:.6g} more in all, {figures.mean_cost:.4g} each, by the probabilities of"
            " that head."
        )
    )
    for change in figures.changes:
        text = (
            f"{names[change.decision]} -> {names[change.new_decision]}: {change.count:,},"
            f" cost {change.expected_cost:.6g} more as made"
        )
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
