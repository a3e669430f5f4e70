"""`lifelong`: the command line. Commands import heavy modules when they run, so that --help stays fast."""

import sys
import traceback
from typing import Any

import click

from lifelong import __version__
from lifelong.commands.cycles import adapt, cycles, plan
from lifelong.commands.feedback import group as feedback
from lifelong.commands.fingerprint import group as fingerprint
from lifelong.commands.interview import recommend
from lifelong.commands.jobs import jobs
from lifelong.commands.knowledge import group as knowledge
from lifelong.commands.knowledge import neighbours
from lifelong.commands.knowledge import signers as _signers  # noqa: F401 - adds its commands to the group
from lifelong.commands.models import calibrate, calibration_sets, heads, models, tasks
from lifelong.commands.operation import (
    audit,
    demo,
    doctor,
    environments,
    export,
    grafana,
    groups,
    initialise,
    monitors,
    processes,
    settings,
    tokens,
)
from lifelong.commands.performance import performance
from lifelong.commands.proposals import proposals
from lifelong.commands.training import retrain, search
from lifelong.commands.validation import estimate_dice, stability, validate
from lifelong.printing import echo, harmless
from lifelong_core.runtime.redaction import redact
from lifelong_core.values.errors import LifelongError

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Start": (demo.demo, initialise.init, processes.serve, processes.monitor),
    "Models": (tasks.tasks, models.models, calibrate.calibrate, calibration_sets.calibration_sets),
    "Heads and cycles": (heads.heads, cycles.cycles, adapt.adapt, plan.plan, proposals),
    "Labels": (feedback.feedback, performance),
    "Metrics": (recommend.recommend, validate.validate, estimate_dice.estimate_dice, stability.stability),
    "Related tasks": (fingerprint.fingerprint, knowledge.knowledge, neighbours.neighbours),
    "Training": (retrain.retrain, search.search_augmentation),
    "Operation": (
        doctor.doctor,
        grafana.grafana,
        monitors.monitors,
        jobs,
        settings.settings,
        environments.environments,
        tokens.tokens,
        audit.audit,
        export.export,
        groups.erase,
        groups.rotate_group_key,
        groups.forget_group_keys,
        initialise.upgrade,
    ),
}
"""All commands, as `lifelong --help` lists them."""


class SectionedGroup(click.Group):
    """A group whose help lists the commands by section."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list for each section."""
        del ctx
        width = max(len(name) for name in self.commands)
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (f"{command.name or '':{width}}", command.get_short_help_str(limit=80))
                        for command in commands
                    ]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; click itself prints its errors, which name files."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            said = error.format_message()
            if harmless(said) == said:
                raise
            raise click.UsageError(harmless(said), getattr(error, "ctx", None)) from error


@click.group(
    cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="lifelong")
def cli() -> None:
    """Serve a medical image classifier and keep its decisions right when prevalences shift.

    Try `lifelong demo` first. Settings come from LIFELONG_* environment variables and lifelong.toml.
    `lifelong COMMAND --help` explains one command.
    """


for section in SECTIONS.values():
    for command in section:
        cli.add_command(command)


def main() -> None:
    """Run the command line; an error of the product is one line on stderr and exit code 1."""
    try:
        cli()
    except LifelongError as error:
        echo(f"Error: {redact(str(error))}", fg="red", err=True)
        sys.exit(1)
    except Exception:  # noqa: BLE001 - a defect; messages of libraries may hold the URL of the database
        echo(redact(traceback.format_exc()), err=True, nl=False)
        sys.exit(1)
