"""`lifelong models training`: how a model was trained."""

import json
from pathlib import Path

import click

from lifelong.commands.common import as_json, model_argument, open_store
from lifelong.printing import echo


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
    from lifelong.commands.interview.files import write_text
    from lifelong.commands.training.plan_text import print_result
    from lifelong_core.develop.training.result import TrainingResult

    with open_store() as store:
        found = store.trainings.get(model)
        result = TrainingResult.from_json(store.artifacts.get(found.result))
    if recipe is not None:
        write_text(recipe, found.recipe.to_json(), field="--recipe")
    if as_json:
        echo(
            json.dumps(
                {
                    "model": model,
                    "job": str(found.job_id),
                    "recipe": found.recipe.to_document(),
                    "result": result.to_document(),
                    "created_at": found.created_at.isoformat(),
                    "created_by": found.created_by,
                }
            )
        )
        return
    print_result(result)
    if recipe is not None:
        echo(f"Wrote {recipe}.")
