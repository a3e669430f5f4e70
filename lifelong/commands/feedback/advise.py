"""`lifelong feedback advise` and `plans`: which predictions to label next."""

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from lifelong.commands.common import (
    as_json,
    environment_option,
    format_count,
    model_option,
    open_store,
    output_option,
    population_arguments,
)
from lifelong.commands.durations import Duration
from lifelong.commands.feedback.plan_text import print_plan
from lifelong.commands.jobs import run_job, timeout_option
from lifelong.commands.tables import print_rows
from lifelong.printing import echo

if TYPE_CHECKING:
    from lifelong_core.store import Store
    from lifelong_core.store.labelling.records import LabellingPlan

_output = output_option("CSV file for the predictions to label; an existing one is replaced.")


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
    from lifelong_core.store.labelling.submission import KIND, NewLabellingPlan, labelling_payload

    asked = NewLabellingPlan.from_document(
        {
            "size": size,
            "window_samples": window_samples,
            "window_seconds": None if window_age is None else window_age.total_seconds(),
        }
    )
    with open_store() as store:
        payload = labelling_payload(store, model, environment, asked)
        result = run_job(store, KIND, payload.to_document(), timeout).result or {}
        _show(store, store.labelling_plans.get(UUID(result["plan"])), output, as_json=as_json)


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
    with open_store() as store:
        if plan is not None:
            _show(store, store.labelling_plans.get(plan), output, as_json=as_json)
            return
        _list(store, model, environment, limit, as_json=as_json)


def _list(store: "Store", model: str | None, environment: str | None, limit: int, *, as_json: bool) -> None:
    from lifelong_core.store.labelling.documents import plan_documents

    model_id = None if model is None else store.models.get(model).id
    documents = plan_documents(store, store.labelling_plans.list(model_id, environment, limit=limit))
    rows = documents if as_json else [_row(document) for document in documents]
    print_rows(rows, as_json=as_json, empty="There is no labelling plan.")


def _row(document: dict[str, Any]) -> dict[str, Any]:
    progress = document["progress"]
    return {
        **{name: document[name] for name in ("id", "model", "environment", "created_at")},
        "labelled": f"{progress['labelled']} of {progress['chosen']}",
        "window": document["window"]["samples"],
    }


def _show(store: "Store", plan: "LabellingPlan", output: Path | None, *, as_json: bool) -> None:
    from lifelong_core.store.labelling.documents import class_names_of, plan_csv, plan_document

    document = plan_document(store, plan)
    if output is not None:
        rows = plan_csv(store.labelling_plans.chosen(plan.id), class_names_of(store, plan))
        output.write_text(rows, encoding="utf-8")
    if as_json:
        echo(json.dumps(document))
        return
    print_plan(document)
    if output is not None:
        echo(f"{format_count(len(document['predictions']), 'prediction')} to label: {output}")
