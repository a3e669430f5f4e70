"""`lifelong predictions`: logged predictions, and the way from the logits of one to its decision."""

from typing import Any

import click

from lifelong.commands.common import CommandGroup
from lifelong.commands.operation_command import operation_command
from lifelong.commands.tables import wrap_text
from lifelong_core.entities.predictions import DecisionPath, PredictionDetails, PredictionList
from lifelong_core.operations.predictions import ListPredictions, ShowPrediction


@click.group(cls=CommandGroup, short_help="Find logged predictions, and show how one was decided.")
def predictions() -> None:
    """Logged predictions: find them, and show the way from the logits of one to its decision."""


def _rows(found: PredictionList) -> list[dict[str, Any]]:
    return [
        {
            "prediction": one.prediction_id,
            "logged_at": one.logged_at,
            "model": one.model,
            "environment": one.environment,
            "head": one.head_version,
            "decision": one.label,
            "true": one.true_label or "",
        }
        for one in found.predictions
    ]


def _text(one: PredictionDetails, _: ShowPrediction) -> str:
    lines = [
        f"{one.prediction_id}: {one.label}, by head {one.head_version} of {one.model} in {one.environment}",
        f"Logged at {one.logged_at:%Y-%m-%d %H:%M:%S} UTC. Label: {one.true_label or 'none'}.",
        f"logits: {_numbers(one.class_names, one.logits)}",
    ]
    for title, path in (("head that decided", one.decided), ("head in force", one.active)):
        lines += [f"{title}: cannot be read"] if path is None else _path(title, path, one)
    cycles = (f"{cycle.id} ({cycle.outcome}, {cycle.finished_at:%Y-%m-%d %H:%M} UTC)" for cycle in one.cycles)
    lines.append(f"used by cycles: {', '.join(cycles) or 'none'}")
    return "\n".join(wrap_text(line, first="", indent="    ") for line in lines)


def _path(title: str, path: DecisionPath, one: PredictionDetails) -> list[str]:
    return [
        f"{title}: {path.head_version}, {path.text}",
        f"  scaled: {_numbers(one.class_names, path.scaled)}",
        f"  probabilities: {_numbers(one.class_names, path.probabilities)}",
        f"  expected costs: {_numbers(one.decision_names, path.expected_costs)}",
        f"  decision: {path.label}",
    ]


def _numbers(names: list[str], values: list[float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(names, values, strict=False))


predictions.add_command(
    operation_command(
        ListPredictions,
        "list",
        rows=_rows,
        empty="No prediction found.",
        kinds={"since": click.STRING, "until": click.STRING},
        metavars={"since": "TIME", "until": "TIME"},
        examples=("lifelong predictions list --model resnet --environment clinic-a --decision 1",),
    )
)
predictions.add_command(operation_command(ShowPrediction, "show", text=_text))
