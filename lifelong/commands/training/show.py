"""`lifelong models training`: how a model was trained."""

import json
from pathlib import Path

import click

from lifelong.commands.common import as_json, model_argument
from lifelong.commands.connection import connect
from lifelong.commands.results import write_text
from lifelong.commands.training.plan_text import print_result
from lifelong.printing import echo
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.result import TrainingResult
from lifelong_core.operations.retrainings import ShowTraining


@click.command()
@model_argument
@click.option(
    "--recipe",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the recipe here, as JSON; `lifelong retrain --recipe` repeats it.",
)
@as_json
def training(model: str, recipe: Path | None, *, as_json: bool) -> None:
    """Show how MODEL (name@version) was trained here: recipe, splits, epochs, parity of its graph, versions."""
    with connect() as connection:
        shown = connection.send(ShowTraining(model=model))
    if recipe is not None:
        write_text(recipe, Recipe.from_document(shown.recipe).to_json(), field="--recipe")
    if as_json:
        echo(json.dumps(shown.to_document()))
        return
    print_result(TrainingResult.from_document(shown.result))
    if recipe is not None:
        echo(f"Wrote {recipe}.")
