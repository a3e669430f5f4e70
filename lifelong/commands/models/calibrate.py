"""`lifelong calibrate`: a calibration set from labelled images or logits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lifelong.calibration import logits_of_images
from lifelong.case_groups import groups_from_csv, groups_from_pattern
from lifelong.client import Client
from lifelong.commands.common import model_argument, service_url, url_option
from lifelong.commands.models.calibration_text import print_refusals, print_report
from lifelong.commands.tables import wrap_text
from lifelong.labelled_images import labelled_images
from lifelong.labelled_logits import SUFFIXES, read_labelled_logits
from lifelong.printing import echo
from lifelong.rich_console import Console
from lifelong_core.deploy import LabeledLogits
from lifelong_core.values.errors import InvalidInputError, LifelongError


@click.command(short_help="Calibrate a model with labelled images or logits.")
@model_argument
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--groups",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV with the columns file,group: images of one patient or study belong together.",
)
@click.option(
    "--group-pattern",
    metavar="REGEX",
    help="Regular expression that finds the group in the file name, e.g. '(?P<group>[^_]+)_.*'.",
)
@click.option("--leave-out", multiple=True, metavar="NAME", help="Sub-folder of SOURCE to leave out.")
@click.option("--dry-run", is_flag=True, help="Only check the head; publish nothing.")
@click.option(
    "--force-because",
    metavar="REASON",
    help="Publish the head although the report refuses it; the reason goes to the audit log.",
)
@url_option
@click.option(
    "--token", envvar="LIFELONG_TOKEN", show_envvar=True, required=True, help="Token with the scope operate."
)
def calibrate(model: str, source: Path, *, url: str | None, token: str, **options: Any) -> None:
    """Calibrate MODEL with the labelled cases in SOURCE, and publish its default head.

    SOURCE is a folder of images, SOURCE/<class name>/*.png, or a file of logits: npz with the arrays
    logits (N, C), labels (N,) and perhaps groups (N,), or CSV with the columns label, logit_0,
    logit_1, ... and perhaps group. An external model needs a file of logits.

    Use cases that the model was not trained on, 50 or more of each class. The running service
    computes the logits of images, so that calibration and predictions share one preprocessing.

    The report compares the new head with the present one on the same cases. A set is refused when
    labels look swapped, when the head is no better than deciding by prevalence alone, or when the
    model does far worse on it than on its previous set. Logits that were made with another
    preprocessing are refused, too; no reason overrides that.

    \b
      lifelong calibrate resnet held_out/ --groups patients.csv --dry-run
      lifelong calibrate triton calibration.npz
    """
    with Client(service_url(url), token) as api:
        description = api.get(f"/v1/admin/models/{model}")
        labelled = _labelled(api, description, source, options)
        try:
            answer = api.add_calibration_set(
                model,
                labelled.to_bytes(description["classes"]),
                dry_run=options["dry_run"],
                force_reason=options["force_because"],
            )
        except LifelongError as error:
            if error.details is None or "findings" not in error.details:
                raise
            report = dict(error.details)
            print_report(report, old_version=report.get("old_head_version"))
            print_refusals(report)
            raise click.exceptions.Exit(1) from error
    report = answer["report"]
    print_report(report, old_version=answer["old_head_version"])
    forced = options["force_because"]
    if report["verdict"] == "refused":
        print_refusals(report, forced=forced is not None)
    if options["dry_run"] and answer["outcome"] == "refused":
        raise click.exceptions.Exit(1)
    _print_rule(answer)
    if options["dry_run"]:
        reason = f", forced: {forced}" if answer["outcome"] == "forced" else ""
        echo(wrap_text(f"Dry run: nothing was published. It would be published{reason}."))
        return
    echo(f"Fitted head {answer['head_version']} of {answer['model']} on {labelled.samples} cases.")
    echo(answer["serving"])


def _print_rule(answer: Mapping[str, Any]) -> None:
    """How the head decides and what that will reach; a service of an earlier version says neither."""
    if answer.get("decision_rule_text"):
        echo(wrap_text(f"The head decides by this rule: {answer['decision_rule_text']}."))
    if answer.get("expected_criterion_text"):
        echo(wrap_text(f"With it: {answer['expected_criterion_text']}."))


def _labelled(
    api: Client, description: Mapping[str, Any], source: Path, options: dict[str, Any]
) -> LabeledLogits:
    """The calibration set: computed from images, or read from a file."""
    from rich.progress import Progress

    table, pattern = options["groups"], options["group_pattern"]
    model = description["model"]
    if source.is_file():
        if source.suffix.lower() not in SUFFIXES:
            raise InvalidInputError(
                f"{source} is neither a folder of images nor an npz or CSV file of logits.", field="SOURCE"
            )
        for name in ("groups", "group_pattern", "leave_out"):
            if options[name]:
                raise InvalidInputError(
                    "this option is for folders of images.",
                    field=f"--{name.replace('_', '-')}",
                    hint="In a file, groups are the array groups (npz) or the column group (CSV).",
                )
        return read_labelled_logits(source, description["classes"])
    if description["kind"] == "external":
        raise InvalidInputError(
            f"{description['model']} is external: the service cannot compute logits of images.",
            field="SOURCE",
            hint=f"Give labelled logits: `lifelong calibrate {model} calibration.npz`.",
        )
    if table is not None and pattern is not None:
        raise InvalidInputError("give either --groups or --group-pattern.", field="--groups")
    images = labelled_images(source, description["classes"], leave_out=options["leave_out"])
    groups = None
    if table is not None:
        groups = groups_from_csv(table, images.names)
    elif pattern is not None:
        groups = groups_from_pattern(pattern, images.names)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("Computing logits", total=len(images.files))
        return logits_of_images(
            api, model, images, groups=groups, on_images=lambda count: progress.advance(bar, count)
        )
