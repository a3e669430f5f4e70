"""`lifelong environments`: the sources of predictions."""

import click

from lifelong.commands.common import CommandGroup, Name, actor, as_json, open_store
from lifelong.commands.tables import print_rows
from lifelong.printing import echo


@click.group(cls=CommandGroup, short_help="List, add, disable and delete environments.")
def environments() -> None:
    """An environment is a source of predictions, such as a hospital or a scanner.

    With LIFELONG_ENVIRONMENT_CREATION=open (the default) the first prediction of a new name adds an environment; with
    `listed` only `lifelong environments add` does. Workers follow within a second.
    """


@environments.command("list")
@as_json
def list_(*, as_json: bool) -> None:
    """List all environments: when and by whom each was added, and since when it is disabled."""
    with open_store() as store:
        rows = [vars(environment) for environment in store.environments.all()]
    print_rows(rows, as_json=as_json, empty="No environment.")


@environments.command()
@click.argument("name", type=Name())
def add(name: str) -> None:
    """Add the environment NAME; an existing one stays as it is."""
    with open_store() as store:
        store.environments.add(name, actor=actor())
    echo(f"The environment {name} is there.")


@environments.command()
@click.argument("name", type=Name())
def disable(name: str) -> None:
    """Refuse predictions in the environment NAME; its logged predictions stay and can still get labels."""
    with open_store() as store:
        store.environments.disable(name, actor=actor())
    echo(f"Disabled {name}: predictions there get 403 within a second.")


@environments.command()
@click.argument("name", type=Name())
def enable(name: str) -> None:
    """Allow predictions in the environment NAME again."""
    with open_store() as store:
        store.environments.enable(name, actor=actor())
    echo(f"Enabled {name}.")


@environments.command()
@click.argument("name", type=Name())
def delete(name: str) -> None:
    """Delete the environment NAME, if nothing was logged or published there; else disable it."""
    with open_store() as store:
        store.environments.delete(name, actor=actor())
    echo(f"Deleted {name}.")
