"""A cycle as people read it in the terminal."""

from typing import TYPE_CHECKING

from lifelong.commands.cycles.affected_text import print_figures
from lifelong.commands.cycles.report_text import print_outcome, print_report
from lifelong.printing import echo

if TYPE_CHECKING:
    from lifelong_core.deploy import AdaptationReport
    from lifelong_core.store import Cycle, Store


def print_cycle(store: "Store", cycle: "Cycle") -> None:
    """Print population, outcome, report, the head that followed, and the affected decisions."""
    model = next(item for item in store.models.list() if item.id == cycle.model_id)
    names = next(task.class_names for task in store.tasks.list() if task.id == model.task_id)
    affected = store.swaps.figures([cycle.id]).get(cycle.id)
    echo(f"{cycle.id}")
    echo(f"{model.reference} in {cycle.environment}, due {cycle.due_at.isoformat(timespec='seconds')}")
    print_outcome(cycle.effect, f"{cycle.window_samples:,} samples")
    report = _report_of(cycle)
    if report is None:
        for reason in cycle.report.get("reasons", []):
            echo(f"  - {reason['text']}")
    else:
        print_report(report, names)
    for sentence in (cycle.report.get("inputs") or {}).get("clocks", ()):
        echo(f"Caution: {sentence}")
    for line in _consequences(cycle):
        echo(line)
    if affected is not None:
        print_figures(affected, names, cycle.published_version)
        echo(f"List them: lifelong cycles affected {cycle.id}")


def _report_of(cycle: "Cycle") -> "AdaptationReport | None":
    """The report without what only a replay needs; None: another version of the product wrote it."""
    from lifelong_core.deploy import AdaptationReport
    from lifelong_core.values.errors import InvalidInputError

    try:
        return AdaptationReport.from_document(
            {key: value for key, value in cycle.report.items() if key != "inputs"}
        )
    except InvalidInputError:
        return None


def _consequences(cycle: "Cycle") -> list[str]:
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
