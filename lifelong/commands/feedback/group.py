"""`lifelong feedback` and its sub-commands."""

import click

from lifelong.commands.common import CommandGroup
from lifelong.commands.feedback.advise import advise, plans
from lifelong.commands.feedback.history import history
from lifelong.commands.feedback.importing import import_labels


@click.group(cls=CommandGroup, short_help="Labels of logged predictions.")
def feedback() -> None:
    """Labels of logged predictions: true classes that arrive later."""


for command in (advise, plans, import_labels, history):
    feedback.add_command(command)
