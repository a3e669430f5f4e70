"""`lifelong models shadow`, `canary`, `trial`, `rollback`, `promotions`: trials of models, and roll-back."""

from typing import TYPE_CHECKING, Any

import click

from lifelong.commands.common import actor, as_json, model_argument, open_store, task_argument
from lifelong.commands.tables import print_rows
from lifelong.printing import echo

if TYPE_CHECKING:
    from lifelong_core.store import Store
    from lifelong_core.store.rollouts.records import Stage
    from lifelong_core.store.rollouts.trials import TrialPopulation

_MOST_CLASSES = 6
"""Classes of a prevalence that are shown."""


@click.command()
@model_argument
def shadow(model: str) -> None:
    """Let MODEL (name@version) decide about the images of its task, too, for the log only.

    No client gets its answers; cycles estimate its prevalence, and labels show its quality. A canary becomes a shadow
    again. Heads are fitted first for environments of known prevalence.
    """
    _start(model, "shadow", 0.0, None)


@click.command()
@model_argument
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    required=True,
    help="Of the requests that name no version, up to 1. A larger share keeps the groups of a smaller one.",
)
@click.option(
    "--force-because",
    metavar="REASON",
    help="Let it answer although `lifelong models promote` would refuse it; the reason goes to the audit log.",
)
def canary(model: str, share: float, force_because: str | None) -> None:
    """Let MODEL (name@version) answer a share of the requests that name no version, always the same groups.

    Repeat it to change the share. The promoted model answers where MODEL fails.
    """
    _start(model, "canary", share, force_because)


@click.command()
@task_argument
@click.option("--end", is_flag=True, help="End the trial: the promoted model answers all requests again.")
@as_json
def trial(task: str, *, end: bool, as_json: bool) -> None:
    """Show the trial of TASK with the figures of both models, or end it."""
    from lifelong_core.store.rollouts.trials import trial_populations

    with open_store() as store:
        if end:
            ended = store.rollouts.end(task, actor=actor())
            echo(f"Ended the trial of {_reference(store, ended.model_id)}.")
            return
        found, rollout = store.tasks.get(task), store.rollouts.current(task)
        if rollout is None:
            echo(
                "[]"
                if as_json
                else f"No model of {task} is on trial. Start one: `lifelong models shadow MODEL`."
            )
            return
        rows = [_row(one, found.class_names) for one in trial_populations(store, found, rollout)]
        if not as_json:
            share = "" if rollout.stage == "shadow" else f" with the share {rollout.share:g}"
            echo(
                f"{_reference(store, rollout.model_id)} is on trial as a {rollout.stage}{share} since"
                f" {rollout.changed_at:%Y-%m-%d %H:%M} UTC (by {rollout.started_by})."
            )
    print_rows(rows, as_json=as_json, empty="No cycle or label of the two models yet.", below="prevalence")


@click.command()
@task_argument
@click.option(
    "--expected-sequence",
    type=click.IntRange(min=0),
    help="Number of the newest promotion that you know; the command fails if there is a newer one.",
)
def rollback(task: str, expected_sequence: int | None) -> None:
    """Promote the model of TASK that was promoted before; each call goes one promotion further back.

    Workers have kept its graph, so they switch within a second.
    """
    from lifelong_core.store import describe_serving
    from lifelong_core.store.registry.serving import WORKERS_PATIENCE_SECONDS

    with open_store() as store:
        model = store.promotions.roll_back(task, actor=actor(), expected_sequence=expected_sequence)
        echo(describe_serving(store, model.reference, patience_seconds=WORKERS_PATIENCE_SECONDS))


@click.command()
@task_argument
@as_json
def promotions(task: str, *, as_json: bool) -> None:
    """List the promoted models of TASK, newest first; `lifelong models rollback` restores an earlier one."""
    with open_store() as store:
        names = {model.id: model.reference for model in store.models.list()}
        rows = [
            {
                "sequence": one.sequence,
                "model": names.get(one.model_id, "removed"),
                "reason": one.reason,
                "restores": one.previous,
                "promoted_at": one.promoted_at,
                "promoted_by": one.promoted_by,
            }
            for one in reversed(store.promotions.list(task))
        ]
    print_rows(rows, as_json=as_json, empty="No model was ever promoted (sequence 0).")


def _start(model: str, stage: "Stage", share: float, force_reason: str | None) -> None:
    from lifelong_core.configuration.settings import Settings
    from lifelong_core.runtime.graph_check import check_servable
    from lifelong_core.store import describe_serving, start_trial
    from lifelong_core.store.registry.serving import WORKERS_PATIENCE_SECONDS as PATIENCE

    with open_store() as store:
        check_servable(
            store, Settings.load(), model, patience_seconds=PATIENCE, may_be_released=stage == "shadow"
        )
        started = start_trial(
            store, model, stage=stage, share=share, actor=actor(), force_reason=force_reason
        )
        if started.fitted:
            echo(f"Fitted heads for: {', '.join(started.fitted)}.")
        echo(describe_serving(store, started.model.reference, patience_seconds=PATIENCE))


def _reference(store: "Store", model_id: int) -> str:
    return next(model.reference for model in store.models.list() if model.id == model_id)


def _row(population: "TrialPopulation", class_names: tuple[str, ...]) -> dict[str, Any]:
    cycle, labelled = population.cycle, population.labelled
    return {
        "model": population.model.reference,
        "role": population.role,
        "environment": population.environment,
        "cycle": None if cycle is None else cycle.effect,
        "samples": None if cycle is None else cycle.window_samples,
        "labelled": None if labelled is None else labelled.samples,
        "accuracy": None if labelled is None else round(labelled.accuracy, 3),
        "expected_cost": None if labelled is None else round(labelled.expected_cost, 3),
        "prevalence": _prevalence(population, class_names),
    }


def _prevalence(population: "TrialPopulation", class_names: tuple[str, ...]) -> str | None:
    found = population.prevalence
    if found is None:
        return None
    shares = zip(class_names, found["prevalence"], found["low"], found["high"], strict=True)
    texts = [f"{name} {share:.3f} ({low:.3f} to {high:.3f})" for name, share, low, high in shares]
    return ", ".join(texts[:_MOST_CLASSES]) + (", ..." if len(texts) > _MOST_CLASSES else "")
