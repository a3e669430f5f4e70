"""`lifelong models shadow`, `canary`, `trial`, `rollback`, `promotions`: trials of models, and roll-back."""

from typing import Any

import click

from lifelong.commands.common import as_json, task_argument
from lifelong.commands.connection import connect
from lifelong.commands.operation_command import operation_command
from lifelong.commands.tables import print_rows
from lifelong.printing import echo
from lifelong_core.operations.trials import (
    ClassEstimate,
    EndTrial,
    ListPromotions,
    NewCanary,
    RollBackModel,
    ShowTrial,
    StartedTrialAnswer,
    StartShadow,
    TrialPopulationAnswer,
)

_MOST_CLASSES = 6
"""Classes of a prevalence that are shown."""


def _started(answer: StartedTrialAnswer, _: Any) -> str:
    fitted = [f"Fitted heads for: {', '.join(answer.fitted_heads)}."] if answer.fitted_heads else []
    return "\n".join([*fitted, answer.serving])


shadow = operation_command(
    StartShadow,
    "shadow",
    help_text="""Let MODEL (name@version) decide about the images of its task, too, for the log only.

    No client gets its answers; cycles estimate its prevalence, and labels show its quality. A canary becomes a shadow
    again. Heads are fitted first for environments of known prevalence.
    """,
    text=_started,
)
canary = operation_command(
    NewCanary,
    "canary",
    help_text="""Let MODEL (name@version) answer a share of the requests that name no version, always the same groups.

    Repeat it to change the share. The promoted model answers where MODEL fails.
    """,
    text=_started,
    kinds={"share": click.FloatRange(0, 1, min_open=True)},
    flags={"force_reason": "--force-because"},
    metavars={"force_reason": "REASON"},
)


@click.command()
@task_argument
@click.option("--end", is_flag=True, help="End the trial: the promoted model answers all requests again.")
@as_json
def trial(task: str, *, end: bool, as_json: bool) -> None:
    """Show the trial of TASK with the figures of both models, or end it."""
    with connect() as connection:
        if end:
            ended = connection.send(EndTrial(task=task))
            echo(f"Ended the trial of {ended.model}.")
            return
        state = connection.send(ShowTrial(task=task))
    going = state.trial
    if going is None:
        echo(
            "[]" if as_json else f"No model of {task} is on trial. Start one: `lifelong models shadow MODEL`."
        )
        return
    if not as_json:
        share = "" if going.stage == "shadow" else f" with the share {going.share:g}"
        echo(
            f"{going.model} is on trial as a {going.stage}{share} since"
            f" {going.changed_at:%Y-%m-%d %H:%M} UTC (by {going.started_by})."
        )
    rows = [_row(population) for population in state.populations]
    print_rows(rows, as_json=as_json, empty="No cycle or label of the two models yet.", below="prevalence")


rollback = operation_command(
    RollBackModel,
    "rollback",
    help_text="""Promote the model of TASK that was promoted before; each call goes one promotion further back.

    Workers have kept its graph, so they switch within a second.
    """,
    text=lambda answer, _: answer.serving,
)
promotions = operation_command(
    ListPromotions,
    "promotions",
    help_text="List the promoted models of TASK, newest first; `lifelong models rollback` restores an earlier one.",
    rows=lambda answer: [
        {
            "sequence": promotion.sequence,
            "model": promotion.model or "removed",
            "reason": promotion.reason,
            "restores": promotion.previous,
            "promoted_at": promotion.promoted_at,
            "promoted_by": promotion.promoted_by,
        }
        for promotion in reversed(answer.promotions)
    ],
    empty="No model was ever promoted (sequence 0).",
)


def _row(population: TrialPopulationAnswer) -> dict[str, Any]:
    cycle, labelled = population.cycle, population.labelled
    return {
        "model": population.model,
        "role": population.role,
        "environment": population.environment,
        "cycle": None if cycle is None else cycle.effect,
        "samples": None if cycle is None else cycle.samples,
        "labelled": None if labelled is None else labelled.samples,
        "accuracy": None if labelled is None else round(labelled.accuracy, 3),
        "expected_cost": None if labelled is None else round(labelled.expected_cost, 3),
        "prevalence": None if cycle is None else _prevalence(cycle.prevalence),
    }


def _prevalence(estimates: dict[str, ClassEstimate] | None) -> str | None:
    if estimates is None:
        return None
    texts = [
        f"{name} {share.estimate:.3f} ({share.low:.3f} to {share.high:.3f})"
        for name, share in estimates.items()
    ]
    return ", ".join(texts[:_MOST_CLASSES]) + (", ..." if len(texts) > _MOST_CLASSES else "")
