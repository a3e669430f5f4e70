"""`lifelong`: the command line. A command is imported when it is used, so that --help stays fast."""

import sys
import traceback
from collections import UserDict
from importlib import import_module
from typing import Any, NamedTuple

import click

from lifelong import __version__
from lifelong.printing import echo, harmless
from lifelong_core.runtime.redaction import redact
from lifelong_core.values.errors import LifelongError


class Entry(NamedTuple):
    """A command: its name, the module of its code within `lifelong.commands`, and what the list of commands says."""

    name: str
    module: str
    short_help: str

    def load(self) -> click.Command:
        """Import the module of the command."""
        module = import_module(f"lifelong.commands.{self.module}")
        return getattr(module, self.name.replace("-", "_"))


SECTIONS: dict[str, tuple[Entry, ...]] = {
    "Start": (
        Entry("demo", "operation.demo", "Train, serve, shift and swap within two minutes."),
        Entry("init", "operation.initialise", "Prepare database, keys and the first token."),
        Entry("serve", "operation.launch", "Serve predictions over HTTP."),
        Entry("monitor", "operation.launch", "Watch the predictions and adapt heads."),
    ),
    "Models": (
        Entry("tasks", "models.tasks", "Add and list tasks: class names and confusion costs."),
        Entry("models", "models.models", "Add, try, promote, list and remove models: ONNX or external."),
        Entry("calibrate", "models.calibrate", "Calibrate a model with labelled images or logits."),
        Entry(
            "calibration-sets",
            "models.calibration_sets",
            "List and activate calibration sets, remove group keys.",
        ),
    ),
    "Heads and cycles": (
        Entry("heads", "models.heads", "List, publish, roll back, pin and approve heads."),
        Entry("populations", "populations", "What each population needs from a person."),
        Entry("dossier", "change_control", "Write the change-control dossier of a population."),
        Entry("report", "change_control", "Write the report of a population about a month."),
        Entry("cycles", "cycles.cycles", "List, show, replay and run cycles."),
        Entry("adapt", "cycles.adapt", "Run one cycle offline, from files."),
        Entry("plan", "cycles.plan", "Plan how many samples an estimate needs."),
        Entry("proposals", "proposals", "Retrainings that monitors propose."),
    ),
    "Predictions and labels": (
        Entry("predictions", "predictions", "Find logged predictions, and show how one was decided."),
        Entry("feedback", "feedback.group", "Labels of logged predictions."),
        Entry("performance", "performance", "Compare estimated and realised performance."),
    ),
    "Metrics": (
        Entry("recommend", "interview.recommend", "Recommend metrics by an interview about the problem."),
        Entry("validate", "validation.validate", "Compute the recommended metrics on labelled data."),
        Entry(
            "estimate-dice",
            "validation.estimate_dice",
            "Estimate the Dice of a segmentation model without labels.",
        ),
        Entry(
            "stability", "validation.stability", "Compare the places that several classifiers find in images."
        ),
    ),
    "Related tasks": (
        Entry("fingerprint", "fingerprint.group", "Describe a task by its images, without sharing any."),
        Entry("knowledge", "knowledge.group", "List, import and export what is known of tasks."),
        Entry("neighbours", "knowledge.neighbours", "What to transfer from which task, with the evidence."),
    ),
    "Training": (
        Entry(
            "retrain", "training.retrain", "Train a model of a task, and compare it with the promoted one."
        ),
        Entry("search-augmentation", "training.retrain", "Search the augmentation policy that suits a task."),
    ),
    "Operation": (
        Entry("doctor", "operation.doctor", "Check the whole installation."),
        Entry("grafana", "operation.grafana", "Write dashboards and alert rules."),
        Entry("monitors", "operation.processes", "List the monitors of all machines."),
        Entry("jobs", "jobs", "Work that monitors do."),
        Entry("notifications", "operation.notifications", "Messages to people, and their deliveries."),
        Entry("settings", "operation.settings", "List every setting, its value and meaning."),
        Entry("environments", "operation.environments", "List, add, disable and delete environments."),
        Entry("tokens", "operation.tokens", "Create, list, rotate and revoke bearer tokens."),
        Entry("audit", "operation.audit", "List who changed what and when; verify the log."),
        Entry("export", "operation.export", "Write the log of an environment to a file."),
        Entry("erase", "operation.groups", "Erase the logged predictions of a patient or study."),
        Entry("rotate-group-key", "operation.groups", "Add a new key for the hashes of groups."),
        Entry("forget-group-keys", "operation.groups", "Forget lost keys of the group hash."),
        Entry("upgrade", "operation.initialise", "Upgrade the database schema to this version."),
    ),
}
"""All commands, as `lifelong --help` lists them."""


class Commands(UserDict[str, Any]):
    """The commands by their names; each is imported when it is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        """Import a command."""
        return super().__getitem__(name).load()


class SectionedGroup(click.Group):
    """A group whose help lists the commands by section."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list for each section."""
        del ctx
        width = max(map(len, self.commands))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{entry.name:{width}}", entry.short_help) for entry in entries])

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
    cls=SectionedGroup,
    commands=Commands({entry.name: entry for entries in SECTIONS.values() for entry in entries}),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="lifelong")
def cli() -> None:
    """Serve a medical image classifier and keep its decisions right when prevalences shift.

    Try `lifelong demo` first. Settings come from LIFELONG_* environment variables and lifelong.toml.
    `lifelong COMMAND --help` explains one command.
    """


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
