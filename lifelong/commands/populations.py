"""`lifelong populations`: what each population needs from a person, and what its cycles saw."""

from typing import Any

import click

from lifelong.commands.common import CommandGroup
from lifelong.commands.operation_command import operation_command
from lifelong_core.entities.populations import PopulationAnswer, PopulationSummary
from lifelong_core.operations.populations import ListPopulations, PopulationList, ShowPopulation
from lifelong_core.store.performance.statements import describe_metric


@click.group(
    cls=CommandGroup, short_help="What each population needs from a person, and what its cycles saw."
)
def populations() -> None:
    """Populations: a model in an environment, with its head, its cycles and its decisions."""


def _row(one: PopulationSummary) -> dict[str, Any]:
    return {
        "model": one.model,
        "environment": one.environment,
        "need": one.need,
        "mode": one.mode,
        "head": one.head_version,
        "head_since": one.head_since,
        "shift_l1": describe_metric(one.shift),
        "cost_now": one.expected_cost,
        "cost_at_best": one.best_expected_cost,
        "accuracy": describe_metric(one.accuracy),
        "at_least": one.required_accuracy,
        "proposals": int(one.head_proposal is not None) + one.retraining_proposals,
        "state": one.state,
    }


def _list(answer: PopulationList) -> list[dict[str, Any]]:
    return [_row(one) for one in answer.populations]


def _describe(answer: PopulationAnswer, _: Any) -> str:
    """The state of a population and its newest cycles, one line for each."""
    one = answer.summary
    lines = [f"{one.model} in {one.environment}, mode {one.mode}: {one.state}"]
    if answer.head is not None:
        lines.append(answer.head)
    lines += [
        f"{window.judged_at:%Y-%m-%d %H:%MZ}  {window.effect}  {window.cycle}  {window.reason}"
        for window in reversed(answer.windows)
    ]
    return "\n".join(lines)


populations.add_command(
    operation_command(
        ListPopulations,
        "list",
        rows=_list,
        empty="No population has predictions yet.",
        below="state",
        examples=["lifelong populations list", "lifelong populations list --need decide --json"],
    )
)
populations.add_command(
    operation_command(
        ShowPopulation,
        "show",
        text=_describe,
        examples=["lifelong populations show resnet clinic-a --limit 20"],
    )
)
