"""`lifelong environments`: the sources of predictions."""

import click

from lifelong.commands.common import CommandGroup
from lifelong.commands.operation_command import operation_command
from lifelong_core.operations.administration.environments import (
    DeleteEnvironment,
    DisableEnvironment,
    EnableEnvironment,
    ListEnvironments,
    NewEnvironment,
)


@click.group(cls=CommandGroup, short_help="List, add, disable and delete environments.")
def environments() -> None:
    """An environment is a source of predictions, such as a hospital or a scanner.

    With LIFELONG_ENVIRONMENT_CREATION=open (the default) the first prediction of a new name adds an environment; with
    `listed` only `lifelong environments add` does. Workers follow within a second.
    """


for command in (
    operation_command(
        ListEnvironments,
        "list",
        help_text="List all environments: when and by whom each was added, and since when it is disabled.",
        rows=lambda answer: [vars(environment) for environment in answer.details],
        empty="No environment.",
    ),
    operation_command(
        NewEnvironment,
        "add",
        text=lambda _, call: f"The environment {call.name} is there.",
        is_position=("name",),
    ),
    operation_command(
        DisableEnvironment,
        "disable",
        text=lambda _, call: f"Disabled {call.name}: predictions there get 403 within a second.",
    ),
    operation_command(EnableEnvironment, "enable", text=lambda _, call: f"Enabled {call.name}."),
    operation_command(
        DeleteEnvironment,
        "delete",
        help_text="Delete the environment NAME, if nothing was logged or published there; else disable it.",
        text=lambda _, call: f"Deleted {call.name}.",
    ),
):
    environments.add_command(command)
