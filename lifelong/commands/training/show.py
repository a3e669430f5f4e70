"""`lifelong models training`: how a model was trained; a plan or a training as text."""

import json
from pathlib import Path

import click

from lifelong.commands.common import as_json, model_argument
from lifelong.commands.connection import connect
from lifelong.commands.job_following import format_seconds
from lifelong.commands.results import write_text
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.develop.training.plan import TrainingPlan
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.result import TrainingResult
from lifelong_core.operations.develop.retrainings import ShowTraining


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


def print_plan(plan: TrainingPlan) -> None:
    """Print what would be done, how long it takes, what it needs and what is missing."""
    echo(f"{plan.task}: {describe_recipe(plan.recipe)}", bold=True)
    rows = [
        {"phase": one.phase.replace("_", " "), "images": one.images, "at_most_epochs": one.epochs}
        for one in plan.phases
    ]
    print_rows(rows, as_json=False, empty="")
    for name, splits in (("Splits", plan.splits), (f"Splits of {plan.recipe.source}", plan.source_splits)):
        if splits is not None:
            echo(f"{name}: about " + ", ".join(f"{count} {split}" for split, count in splits.items()) + ".")
    if plan.duration is None:
        echo("Duration: not known.")
    else:
        times = [
            format_seconds(one) for one in (plan.duration.seconds, plan.duration.low, plan.duration.high)
        ]
        echo(wrap_text(f"Duration: about {times[0]} ({times[1]} to {times[2]}): {plan.duration.explanation}"))
    disk = "" if plan.disk_bytes is None else f", {plan.disk_bytes / 1e9:.1f} GB of disk"
    echo(f"Needs: device {plan.device}, up to {plan.memory_bytes / 1e9:.1f} GB of memory{disk}.")
    for text in plan.warnings:
        echo(wrap_text(f"Warning: {text}"), fg="yellow")
    for text in plan.missing:
        echo(wrap_text(f"Missing: {text}"), fg="red")


def describe_recipe(recipe: Recipe) -> str:
    """A recipe in one line."""
    optimisation = recipe.optimisation
    transfer = "no transfer" if recipe.scenario is None else f"{recipe.scenario} from {recipe.source}"
    size = "" if recipe.image_size is None else f" at {recipe.image_size} pixels"
    return (
        f"{recipe.architecture}{size} from {recipe.initial_weights} weights, {transfer}, at most"
        f" {optimisation.epochs} epochs, seed {recipe.seed}"
    )


def print_result(result: TrainingResult) -> None:
    """Print recipe, splits, epochs, parity and durations of a training."""
    echo(f"{result.task}: {describe_recipe(result.recipe)}", bold=True)
    splits = [
        {
            "split": name,
            "images": facts.images,
            "groups": facts.groups,
            **dict(zip(result.class_names, facts.counts, strict=True)),
        }
        for name, facts in result.splits.items()
    ]
    print_rows(splits, as_json=False, empty="")
    epochs = [
        {
            "phase": one.phase,
            "epoch": f"{one.epoch}{' (best)' if _is_best(result, one.phase, one.epoch) else ''}",
            "learning_rate": f"{one.learning_rate:.2g}",
            "training_loss": f"{one.training_loss:.4f}",
            "validation_loss": f"{one.validation_loss:.4f}",
            "balanced_accuracy": f"{one.validation_metric:.3f}",
            "seconds": f"{one.seconds:.1f}",
        }
        for one in result.epochs
    ]
    print_rows(epochs, as_json=False, empty="")
    parity = result.parity
    echo(
        f"Parity of the graph on {parity.images} images: logits differ by at most {parity.largest_difference:.2g},"
        f" through the service's preprocessing by {parity.largest_difference_through_service:.2g}"
        f" (allowed: {parity.tolerance:.2g})."
    )
    seconds = ", ".join(f"{name} {format_seconds(one)}" for name, one in result.seconds.items())
    versions = ", ".join(f"{name} {one}" for name, one in result.versions.items())
    echo(f"Device: {result.device}. Durations: {seconds}.\nVersions: {versions}.")
    for text in result.warnings:
        echo(wrap_text(f"Warning: {text}"), fg="yellow")


def _is_best(result: TrainingResult, phase: str, epoch: int) -> bool:
    return phase == "training" and epoch == result.best_epoch
