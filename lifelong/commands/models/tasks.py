"""`lifelong tasks`: classification problems with their class names and confusion costs."""

from typing import Any

import click

from lifelong.commands.common import CommandGroup, Name, actor, as_json, open_store
from lifelong.commands.tables import print_rows


def parse_costs(text: str | None, classes: int) -> list[list[float]]:
    """The cost matrix given as JSON text or as the path of a JSON file; 0-1 costs without one."""
    import json
    from pathlib import Path

    from lifelong_core.errors import InvalidInputError

    if text is None:
        return [[float(true != decided) for decided in range(classes)] for true in range(classes)]
    try:
        document: Any = json.loads(text if text.lstrip().startswith("[") else Path(text).read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise InvalidInputError(
            f"{text[:80]!r} is neither a JSON matrix nor a readable file of one ({error}).",
            field="--costs",
            hint="Example: '[[0, 1], [5, 0]]' - rows are true classes, columns decisions.",
        ) from error
    return document


@click.group(cls=CommandGroup, short_help="Add and list tasks: class names and confusion costs.")
def tasks() -> None:
    """Tasks are classification problems with class names and the cost of each confusion."""


@tasks.command()
@click.argument("name", type=Name())
@click.option("--classes", required=True, help="Class names in the order of the logits, separated by commas.")
@click.option(
    "--costs", help="JSON matrix (or its file): rows true class, columns decision. Default: 0-1 costs."
)
def add(name: str, classes: str, costs: str | None) -> None:
    """Add the task NAME."""
    class_names = [part.strip() for part in classes.split(",")]
    with open_store() as store:
        task = store.tasks.add(name, class_names, parse_costs(costs, len(class_names)), actor=actor())
    click.echo(f"Added task {task.name} with classes {', '.join(task.class_names)}.")


@tasks.command("list")
@as_json
def list_(*, as_json: bool) -> None:
    """List all tasks."""
    with open_store() as store:
        rows = [
            {"task": task.name, "classes": ", ".join(task.class_names), "costs": task.costs.tolist()}
            for task in store.tasks.list()
        ]
    print_rows(rows, as_json=as_json, empty="No task yet: `lifelong tasks add`.")
