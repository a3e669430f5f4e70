"""`lifelong search-augmentation`: the augmentation policy that suits a task."""

import json
from pathlib import Path

import click

from lifelong.commands.common import actor, as_json, open_store, task_argument
from lifelong.commands.jobs import expect_monitor
from lifelong.commands.training.images import located
from lifelong.commands.training.retrain import follow, print_detached, read_recipe
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.store.trainings.asking import SEARCH_KIND


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
