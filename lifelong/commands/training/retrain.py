"""`lifelong retrain` and `search-augmentation`: start a training, follow it, and see its result."""

import json
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import Name, actor, as_json, model_option, open_store, task_argument
from lifelong.commands.cycles.inputs import name_file_in_errors
from lifelong.commands.interview.screen import terminal
from lifelong.commands.job_following import follow_job
from lifelong.commands.jobs import expect_monitor, expect_success
from lifelong.commands.models.promotion_text import print_promotion
from lifelong.commands.tables import wrap_text
from lifelong.commands.training.images import located, refusals, source_path
from lifelong.commands.training.show import print_plan
from lifelong.commands.validation.validation_text import print_validation
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.design import ValidationResult
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.promotion import PromotionReport
from lifelong_core.store import Job, Store
from lifelong_core.store.proposals.acceptance import start_retraining
from lifelong_core.store.trainings.asking import (
    KIND,
    SEARCH_KIND,
    Retraining,
    StatedFacts,
    complete_retraining,
    plan_retraining,
    retraining_payload,
)
from lifelong_core.values.errors import InvalidInputError

_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_images = click.Path(exists=True, path_type=Path)


@click.command(short_help="Train a model of a task, and compare it with the promoted one.")
@task_argument
@click.option(
    "--data",
    type=_images,
    help="Labelled images: a folder with one sub-folder per class, or a CSV, tar or zip file.",
)
@click.option(
    "--from",
    "suggestion",
    metavar="SCENARIO:SOURCE",
    help="What to transfer from which task: architecture, pretraining, augmentation or co_training, as `lifelong"
    " neighbours` suggests.",
)
@click.option(
    "--recipe",
    type=_file,
    help="JSON document with everything that is not default; `lifelong models training --recipe` writes one.",
)
@click.option(
    "--source-data", type=_images, help="Images of the source task, for pretraining and co_training."
)
@model_option("Name of the model whose next version this is; else that of the promoted one.", type=Name())
@click.option("--proposal", help="The proposal that this retraining answers: an id or its beginning.")
@click.option(
    "--plan", is_flag=True, help="Print what would be done, how long and what it needs; start nothing."
)
@click.option("--detach", is_flag=True, help="Do not wait for the end of the job.")
@as_json
def retrain(
    task: str,
    data: Path | None,
    suggestion: str | None,
    recipe: Path | None,
    source_data: Path | None,
    model: str | None,
    proposal: str | None,
    *,
    plan: bool,
    detach: bool,
    as_json: bool,
) -> None:
    """Train the next model of TASK, evaluate it, and compare it with the promoted one. It is not promoted.

    Without --from and --recipe it is the uninformed baseline. The job is done by a monitor, which must reach the images
    below LIFELONG_IMAGE_ROOTS; a tar or zip file elsewhere is uploaded. Ctrl-C ends the command, not the job.

    \b
    Examples:
      lifelong retrain lesions --data /data/lesions --plan
      lifelong retrain lesions --data /data/lesions --from architecture:moles
    """
    with open_store() as store:
        asked = complete_retraining(
            store, task, recipe=read_recipe(recipe), suggestion=suggestion, model=model
        )
        if plan:
            _print_plan(store, asked, data, source_data, as_json=as_json)
            return
        job = _submit(store, asked, data, source_data, proposal)
        if detach:
            print_detached(job, as_json=as_json)
            return
        ended = follow(store, job)
        if as_json:
            echo(json.dumps(ended.result))
        else:
            _print_outcome(store, ended.result or {})


def read_recipe(file: Path | None) -> Recipe | None:
    """The recipe in a file; None: no file is given.

    Raises:
        InvalidInputError: it is no recipe; the message names file and field.
    """
    if file is None:
        return None
    with name_file_in_errors(file, InvalidInputError):
        return Recipe.from_json(file.read_bytes())


def _print_plan(
    store: Store, asked: Retraining, data: Path | None, source_data: Path | None, *, as_json: bool
) -> None:
    facts = StatedFacts(
        path=None if data is None else str(data),
        source_path=None if source_data is None else str(source_data),
    )
    settings = Settings.load()
    plan = plan_retraining(store, settings, asked, facts)
    plan = plan.model_copy(update={"missing": (*plan.missing, *refusals(data, source_data, settings))})
    if as_json:
        echo(plan.to_json())
    else:
        print_plan(plan)


def _submit(
    store: Store,
    asked: Retraining,
    data: Path | None,
    source_data: Path | None,
    proposal: str | None,
) -> Job:
    if data is None:
        raise InvalidInputError(
            "expected the images to train on.", field="--data", hint="Give --data FOLDER."
        )
    settings = Settings.load()
    source = source_path(source_data, settings)
    with located(data, settings) as (location, upload):
        payload = retraining_payload(asked, source_path=source, **location)
        expect_monitor(store)
        if proposal is None:
            return store.jobs.submit(KIND, payload, upload=upload, actor=actor())
        answered = store.proposals.find(proposal).id
        return start_retraining(store, answered, payload, upload=upload, actor=actor())[0]


def print_detached(job: Job, *, as_json: bool) -> None:
    """Say how a job is followed that the command does not wait for."""
    if as_json:
        echo(json.dumps({"job": str(job.id)}))
    else:
        echo(f"Submitted the job {job.id}. Follow it: `lifelong jobs follow {job.id}`.")


def follow(store: Store, job: Job) -> Job:
    """The job when it has succeeded.

    Raises:
        Exit: Ctrl-C; the job goes on.
        ConflictError: it failed or was cancelled.
    """
    console = terminal(err=True)
    try:
        return expect_success(follow_job(store, job, console))
    except KeyboardInterrupt:
        echo(
            f"The job {job.id} goes on: `lifelong jobs follow {job.id}`, or end it: `lifelong jobs cancel {job.id}`.",
            err=True,
        )
        raise click.exceptions.Exit(130) from None


def _print_outcome(store: Store, result: dict[str, Any]) -> None:
    """The metrics, beside those of the promoted model where there is one, warnings, and what to type next."""
    model, promotion, evaluation = result["model"], result["promotion"], result["evaluation"]
    echo(f"Registered {model}.", bold=True)
    if evaluation is not None:
        content = store.artifacts.get(evaluation["result"])
        print_validation(terminal(), ValidationResult.from_json(content))
    if promotion is not None:
        print_promotion(terminal(), PromotionReport.from_json(store.artifacts.get(promotion["result"])))
    for text in result["warnings"]:
        echo(wrap_text(f"Warning: {text}"), fg="yellow")
    echo(f"How it was trained: `lifelong models training {model}`.")
    echo(f"Next: {_next_step(store, result)}")


def _next_step(store: Store, result: dict[str, Any]) -> str:
    model, promotion = result["model"], result["promotion"]
    trained = store.models.get(model)
    if result["head"] is None:
        return f"`{trained.calibration_command}`"
    if store.tasks.get(result["task"]).promoted_model_id == trained.id:
        return "nothing: it is the first model of its task, and answers requests."
    if promotion is not None and promotion["advice"] == "reject":
        return (
            "train with more data or another suggestion:"
            f" `lifelong neighbours {result['task']} --scenario architecture`."
        )
    return f"`lifelong models shadow {model}`, or at once `lifelong models promote {model}`"


@click.command("search-augmentation", short_help="Search the augmentation policy that suits a task.")
@task_argument
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Labelled images.")
@click.option(
    "--recipe",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON document: how the model that scores is trained.",
)
@click.option("--trials", type=click.IntRange(1, 10_000), help="Sub-policies that are tried.")
@click.option("--detach", is_flag=True, help="Do not wait for the end of the job.")
@as_json
def search_augmentation(
    task: str, data: Path, recipe: Path | None, trials: int | None, *, detach: bool, as_json: bool
) -> None:
    """Search the augmentation policy of TASK on its images, once; other tasks take it over by augmentation:TASK.

    TASK is registered here, or one of the knowledge base. A monitor does the work.
    """
    asked = read_recipe(recipe)
    with open_store() as store, located(data, Settings.load()) as (location, upload):
        given = {"recipe": None if asked is None else asked.to_document(), "trials": trials}
        payload = {"task": task, **location} | {k: v for k, v in given.items() if v is not None}
        expect_monitor(store)
        job = store.jobs.submit(SEARCH_KIND, payload, upload=upload, actor=actor())
        if detach:
            print_detached(job, as_json=as_json)
            return
        result = follow(store, job).result or {}
    if as_json:
        echo(json.dumps(result))
        return
    echo(f"The policy of {task} has {len(result['policy']['sub_policies'])} sub-policies.", bold=True)
    for steps in result["policy"]["sub_policies"]:
        named = [f"{one['operation']} {one['magnitude']:.2f} ({one['probability']:.0%})" for one in steps]
        echo(f"  {', '.join(named)}")
    for text in result["warnings"]:
        echo(f"Warning: {text}", fg="yellow")
    echo(f"Next: `lifelong retrain TASK --data FOLDER --from {result['suggestion']}`")
