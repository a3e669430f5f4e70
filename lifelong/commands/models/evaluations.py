"""`lifelong models validate` and `lifelong models report`: how good a model is, before it is promoted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import (
    actor,
    as_json,
    environment_option,
    level_option,
    model_argument,
    open_store,
    output_option,
)
from lifelong.commands.cycles.inputs import name_file_in_errors
from lifelong.commands.jobs import expect_monitor, finish_job, timeout_option
from lifelong.commands.models.promotion_text import print_promotion
from lifelong.commands.results import deliver, terminal
from lifelong.commands.validation.options import aggregate_option, settings_of, uncertainty_options
from lifelong.commands.validation.validation_text import print_validation
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.design import ValidationResult
from lifelong_core.promotion import PromotionReport
from lifelong_core.store import Job, Store
from lifelong_core.store.evaluations.comparisons import find_pair, paired_test_set, submit_comparison
from lifelong_core.store.evaluations.validations import submit_validation
from lifelong_core.values.errors import InvalidInputError

AGAINST = 3
"""Exit status where the thresholds are missed, or the report advises against the promotion."""

_existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_file = click.Path(dir_okay=False, path_type=Path)


def _output_options(command: Any) -> Any:
    options = (
        click.option(
            "--replicates",
            type=click.IntRange(100, 10_000),
            default=1000,
            show_default=True,
            help="Resampled data sets.",
        ),
        level_option(),
        click.option("--html", type=_file, help="Write an HTML report."),
        output_option("Write the result here, as JSON."),
        as_json,
        timeout_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@model_argument
@click.option("--data", type=_existing_file, required=True, help="npz file of labelled logits.")
@environment_option("Its head decides; without it, the model's default head.")
@uncertainty_options
@aggregate_option
@_output_options
def validate(
    model: str,
    data: Path,
    environment: str | None,
    aggregate: str,
    **outputs: Any,
) -> None:
    """Validate MODEL (name@version) by the metrics and thresholds of its task.

    The file holds logits (N, C) and labels (N,), perhaps groups (N,) and metadata_KEY (N,), which defines subgroups. A
    monitor does the work. In a task of two classes, uncertainties (N,), or the logits of members as logits_1, logits_2,
    ..., give uncertainty-aware scores. Promotion asks for the newest validation with the default head.

    The command exits with 3 if the model does not reach all thresholds, where there are any.
    """
    with open_store() as store:
        with name_file_in_errors(data, InvalidInputError):
            names = store.models.class_names(model)
            labelled = LabelledSet.from_bytes(data.read_bytes(), class_names=names)
        expect_monitor(store)
        job = submit_validation(
            store,
            model,
            labelled,
            environment=environment,
            replicates=outputs["replicates"],
            level=outputs["level"],
            actor=actor(),
            uncertainty=settings_of(outputs),
            by_group=aggregate == "by-group",
        )
        document = _finished(store, job, outputs)
    result = ValidationResult.from_json(document)
    if not outputs["as_json"]:
        print_validation(terminal(), result)
    if result.acceptance and not result.accepted:
        raise click.exceptions.Exit(AGAINST)


@click.command()
@model_argument
@click.option(
    "--against", metavar="MODEL", help="The current model; without it, the promoted one of the task."
)
@click.option(
    "--data",
    type=_existing_file,
    help="npz file of labelled cases with the logits of both models; without it, the test set of the training.",
)
@click.option("--origin", default="", help="Where the cases come from, in words, for the report.")
@_output_options
def report(model: str, against: str | None, data: Path | None, origin: str, **outputs: Any) -> None:
    """Compare MODEL (name@version) with the current one on the same labelled cases: the promotion report.

    The file holds logits (N, C) of MODEL, current_logits (N, C) and labels (N,), perhaps groups (N,), names (N,),
    metadata_KEY (N,), which defines subgroups, and models (2,): MODEL and the current model as name@version, so that
    logits of others are refused. Use cases that neither model was trained or calibrated on. A monitor does the work;
    the report counts as a validation of MODEL.

    The command exits with 3 if the report advises against the promotion.
    """
    with open_store() as store:
        pair = find_pair(store, model, against)
        if data is None:
            cases = paired_test_set(store, pair)
            origin = origin or f"test split of the training of {pair.new.reference}"
        else:
            with name_file_in_errors(data, InvalidInputError):
                cases = PairedSet.from_bytes(data.read_bytes(), class_names=pair.task.class_names)
        expect_monitor(store)
        job = submit_comparison(
            store,
            pair,
            cases,
            origin=origin,
            replicates=outputs["replicates"],
            level=outputs["level"],
            actor=actor(),
        )
        document = _finished(store, job, outputs)
    made = PromotionReport.from_json(document)
    if not outputs["as_json"]:
        print_promotion(terminal(), made)
    if made.verdict.advice == "reject":
        raise click.exceptions.Exit(AGAINST)


def _finished(store: Store, job: Job, outputs: Mapping[str, Any]) -> str:
    """The result of the job as JSON, when it is done; files and standard output get it where that is asked for."""
    result = finish_job(store, job, outputs["timeout"]).result or {}
    document = store.artifacts.get(result["result"]).decode()
    page = None if outputs["html"] is None else store.artifacts.get(result["report"]).decode()
    deliver(document, page or "", outputs)
    return document
