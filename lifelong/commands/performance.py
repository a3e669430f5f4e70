"""`lifelong performance`: how good the decisions are, estimated without labels and counted on labelled predictions."""

import json
from typing import Any

import click

from lifelong.commands.common import as_json, default_environment_argument, optional_model_argument
from lifelong.commands.connection import connect
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.entities.performance import ComparedPeriod
from lifelong_core.operations.performance import ListPerformance, ShowPerformance
from lifelong_core.store.performance.statements import TITLES, describe_metric


@click.command()
@optional_model_argument
@default_environment_argument
@as_json
def performance(model: str | None, environment: str, *, as_json: bool) -> None:
    """Compare estimated and realised performance.

    MODEL is judged in ENVIRONMENT, by default in `default`; without MODEL, all populations are listed.

    Each row is a day (UTC) and a head version: the last estimate of a cycle without labels, and what the labelled
    predictions of that day and head show, both with intervals. A monitor computes them about a minute after new labels
    or a new cycle.

    Where a recommendation states prevalences, its expected cost on the labelled predictions is shown at the stated, the
    estimated and the realised ones.

    \b
    Examples:
      lifelong performance
      lifelong performance resnet clinic-a
      lifelong performance resnet clinic-a --json
    """
    if model is None:
        _list(as_json=as_json)
        return
    with connect() as connection:
        compared = connection.send(ShowPerformance(model=model, environment=environment))
    if as_json:
        echo(json.dumps(compared.to_document()))
        return
    at = f"{compared.computed_at:%Y-%m-%d %H:%M}Z"
    echo(
        f"{compared.model} in {compared.environment}, computed {at} (later labels count after about a minute)"
    )
    for sentence in compared.statements:
        echo(wrap_text(sentence))
    for warning in compared.warnings:
        echo(wrap_text(f"Warning: {warning}", indent="  ", first=""), fg="yellow")
    echo()
    print_rows(
        [_row(day) for day in compared.days], as_json=False, empty="No day with an estimate or a label."
    )


def _list(*, as_json: bool) -> None:
    with connect() as connection:
        listed = connection.send(ListPerformance(limit=1000)).populations
    rows = [one.to_document() | {"statements": " ".join(one.statements)} for one in listed]
    print_rows(rows, as_json=as_json, empty="No performance was estimated yet.", below="statements")


def _row(day: ComparedPeriod) -> dict[str, Any]:
    estimated, realised = day.estimated, day.realised
    row: dict[str, Any] = {"day": f"{day.since:%Y-%m-%d}", "head": day.head_version}
    for name, title in TITLES.items():
        row[f"estimated_{title}"] = describe_metric(
            None if estimated is None else estimated.metrics.get(name)
        )
        row[f"realised_{title}"] = describe_metric(None if realised is None else realised.metrics.get(name))
    row["labels"] = None if realised is None else realised.samples
    row["agree"] = day.agrees
    return row
