"""`lifelong feedback advise` and `plans`: which predictions to label next, and a plan as text."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from lifelong.commands.common import (
    as_json,
    environment_option,
    format_count,
    model_option,
    output_option,
    population_arguments,
)
from lifelong.commands.connection import Connection, connect
from lifelong.commands.durations import Duration
from lifelong.commands.jobs import run_operation, timeout_option
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.entities.labelling import PlanLine
from lifelong_core.operations.labelling_plans import ListPlans, ShowPlan, WantedPlan, plan_csv
from lifelong_core.operations.tasks import ListTasks

_output = output_option("CSV file for the predictions to label; an existing one is replaced.")

_LABEL = 18
"""Columns of the names."""


@click.command(short_help="Choose which recent predictions to label next.")
@population_arguments
@click.option("--size", type=click.IntRange(min=1), required=True, help="Number of labels wanted.")
@click.option(
    "--window-samples", type=click.IntRange(min=1), help="Largest number of predictions to choose from."
)
@click.option("--window-age", type=Duration(), help="Largest age of these predictions, e.g. 30d.")
@_output
@timeout_option
@as_json
def advise(
    model: str,
    environment: str,
    size: int,
    window_samples: int | None,
    window_age: timedelta | None,
    output: Path | None,
    timeout: timedelta,
    *,
    as_json: bool,
) -> None:
    """Choose which recent predictions of a population to label next; a monitor does it, as a job.

    Predictions whose cost is uncertain are chosen with higher probability, so that the labels narrow the interval on
    expected cost most. Each one's probability (propensity) is stored and becomes that of its label. Label them in the
    order of the file: then every part of it can be evaluated. Without window options, the window is that of the cycles.

    \b
    Examples:
      lifelong feedback advise resnet@1 clinic-a --size 100 --output labels-to-get.csv
      (fill in the column label: class index or name)
      lifelong feedback import labels-to-get.csv
    """
    window_seconds = None if window_age is None else window_age.total_seconds()
    wanted = WantedPlan.read(
        {
            "size": size,
            "window_samples": window_samples,
            "window_seconds": window_seconds,
            "model": model,
            "environment": environment,
        }
    )
    with connect() as connection:
        result = run_operation(connection, wanted, timeout).result or {}
        _show(connection, UUID(result["plan"]), output, as_json=as_json)


@click.command(short_help="List labelling plans, or show one.")
@click.argument("plan", required=False, type=click.UUID)
@model_option()
@environment_option()
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of plans.")
@_output
@as_json
def plans(
    plan: UUID | None,
    model: str | None,
    environment: str | None,
    limit: int,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """List the newest labelling plans, newest first; with PLAN (its id), show this one and write its CSV file."""
    if plan is None and output is not None:
        raise click.UsageError("--output needs the id of a plan.")
    with connect() as connection:
        if plan is not None:
            _show(connection, plan, output, as_json=as_json)
            return
        listed = connection.send(ListPlans(model=model, environment=environment, limit=limit)).plans
    rows = [plan.to_document() if as_json else _row(plan) for plan in listed]
    print_rows(rows, as_json=as_json, empty="There is no labelling plan.")


def _row(plan: PlanLine) -> dict[str, Any]:
    return {
        "id": str(plan.id),
        "model": plan.model,
        "environment": plan.environment,
        "created_at": plan.created_at.isoformat(),
        "labelled": f"{plan.progress.labelled} of {plan.progress.chosen}",
        "window": plan.window.samples,
    }


def _show(connection: Connection, plan_id: UUID, output: Path | None, *, as_json: bool) -> None:
    plan = connection.send(ShowPlan(plan=plan_id))
    if output is not None:
        tasks = {task.name: task for task in connection.send(ListTasks()).tasks}
        output.write_text(plan_csv(plan.predictions, tasks[plan.task].class_names), encoding="utf-8")
    if as_json:
        echo(json.dumps(plan.to_document()))
        return
    print_plan(plan)
    if output is not None:
        echo(f"{format_count(len(plan.predictions), 'prediction')} to label: {output}")


def print_plan(plan: PlanLine) -> None:
    """Print a plan: what it chose, what its labels tell, and the newest estimate."""
    window = plan.window
    lines = {
        "plan": str(plan.id),
        "population": f"{plan.model} in {plan.environment}, head {plan.head_version}",
        "window": f"{window.samples:,} predictions from {_minute(window.since)} to {_minute(window.until)}",
        "labelled before": f"{plan.labelled_before:,}; they are not chosen again",
        "chosen": f"{plan.size:,}, of which {plan.progress.labelled:,} have a label now",
        "expected width": _widths(plan.expected_widths),
    }
    for name, text in lines.items():
        _line(name, text)
    _print_estimate(plan.estimate)


def _widths(widths: Mapping[str, Any]) -> str:
    names = {
        "planned": "with these labels",
        "random": "with labels at random",
        "label_free": "without labels",
    }
    known = [f"{widths[name]:.4g} {text}" for name, text in names.items() if widths[name] is not None]
    return f"of the {widths['confidence']:.0%} interval on expected cost: {', '.join(known)}"


def _print_estimate(estimate: Mapping[str, Any] | None) -> None:
    if estimate is None:
        _line("estimate", "a monitor computes it when labels have arrived")
        return
    titles = {
        "labelled": f"with {estimate['labels']} labels",
        "labels_alone": "labels alone",
        "label_free": "without labels",
    }
    for name, title in titles.items():
        if estimate[name]:
            _line(title, "; ".join(_figure(metric, three) for metric, three in estimate[name].items()))
    for note in estimate["notes"]:
        echo(wrap_text(note))


def _figure(metric: str, three: Mapping[str, float | None]) -> str:
    value, low, high = (three[name] for name in ("value", "low", "high"))
    if value is None:
        return f"{metric} undefined"
    interval = "" if low is None or high is None else f" ({low:.4g} to {high:.4g})"
    return f"{metric} {value:.4g}{interval}"


def _line(name: str, text: str) -> None:
    echo(wrap_text(text, first=f"{name:{_LABEL}}", indent=" " * _LABEL))


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"
