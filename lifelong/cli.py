"""`lifelong`: the command line. Commands import what they need when they run, so that --help stays instant."""

import sys

import click

from lifelong.commands import (
    adapt,
    calibrate,
    demo,
    doctor,
    export,
    groups,
    heads,
    initialise,
    models,
    processes,
    recommend,
    settings,
    tasks,
    tokens,
    validate,
)
from lifelong_core.errors import LifelongError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="lifelong")
def cli() -> None:
    """Serve a medical image classifier and keep its decisions right when prevalences shift.

    Try `lifelong demo` first. Settings come from LIFELONG_* environment variables and lifelong.toml.
    """


for command in (
    demo.demo,
    initialise.init,
    initialise.upgrade,
    processes.serve,
    processes.monitor,
    tasks.tasks,
    models.models,
    calibrate.calibrate,
    recommend.recommend,
    validate.validate,
    adapt.adapt,
    heads.heads,
    tokens.tokens,
    doctor.doctor,
    export.export,
    groups.erase,
    groups.rotate_group_key,
    groups.forget_group_keys,
    settings.settings,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; what the product can explain ends as one line on stderr and exit code 1."""
    try:
        cli()
    except LifelongError as error:
        click.secho(f"Error: {error}", fg="red", err=True)
        sys.exit(1)
