"""`lifelong validate`: the recommended metrics of models on labelled data, without a service."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import (
    as_json,
    level_option,
    output_option,
    seed_option,
    task_option,
)
from lifelong.commands.connection import connect
from lifelong.commands.cycles.inputs import name_file_in_errors
from lifelong.commands.interview.attached import find_task, readable
from lifelong.commands.results import deliver, terminal
from lifelong.commands.validation.labelled_files import (
    LabelledOutputs,
    model_outputs,
    read_outputs,
    with_indices,
)
from lifelong.commands.validation.option_values import (
    data_by_model,
    load_metrics,
    parse_threshold,
)
from lifelong.commands.validation.options import aggregate_option, settings_of, uncertainty_options
from lifelong.commands.validation.validation_text import print_comparison, print_validation
from lifelong.printing import echo
from lifelong_core.design import (
    AcceptanceThreshold,
    Interview,
    ModelComparison,
    ModelOutputs,
    Recommendation,
    ValidationResult,
    compare,
)
from lifelong_core.design import validate as validate_one
from lifelong_core.design.recommendation.document import label_metrics
from lifelong_core.design.recommendation.stated_rule import recommended_rule
from lifelong_core.design.report.pages import comparison_html, validation_html
from lifelong_core.design.validation.decisions.decide import needs_other_cases
from lifelong_core.values.class_labels import composed
from lifelong_core.values.control_characters import escape_controls
from lifelong_core.values.errors import InvalidInputError

existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)
file = click.Path(dir_okay=False, path_type=Path)

NOT_ACCEPTED = 3
"""Exit code if no model reaches all thresholds."""

HISTORY = re.compile(rb'"history"\s*:')
"""A field that only interviews have."""


@click.command(short_help="Compute the recommended metrics on labelled data.")
@click.argument("data", nargs=-1, required=True, metavar="[NAME=]FILE ...")
@click.option(
    "--recommendation", type=existing_file, help="File of `lifelong recommend`: --output, or --state."
)
@task_option("Take recommendation, class names and thresholds from this task.")
@click.option(
    "--cut-offs",
    multiple=True,
    metavar="[NAME=]FILE",
    help="npz with labels and outputs of other samples, on which cut-offs are chosen; one for each model.",
)
@click.option(
    "--uncertainties",
    multiple=True,
    metavar="[NAME=]FILE",
    help="npy or CSV with the predicted uncertainty of each sample, in a task of two classes; one for each model.",
)
@click.option(
    "--members",
    multiple=True,
    metavar="[NAME=]FILE",
    help="npz or npy with outputs of the same samples by a further model or augmentation; repeat. Their spread is the"
    " uncertainty.",
)
@uncertainty_options
@click.option(
    "--score-prevalence",
    metavar="SHARES",
    help="Class shares for which the probabilities hold, separated by commas, e.g. 0.9,0.1; without it, those of the"
    " data. Net benefit corrects the probabilities from them to the class shares of use.",
)
@aggregate_option
@click.option(
    "--metric",
    "custom",
    multiple=True,
    metavar="MODULE:NAME",
    help="A metric of yours: a CustomMetric in a Python module, which is imported; repeatable.",
)
@click.option("--classes", help="Names of the classes in the order of the scores, separated by commas.")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="LABEL=VALUE",
    help="An acceptance threshold, e.g. BA=0.8; repeatable. LABEL[CLASS]=VALUE for one class.",
)
@click.option("--replicates", type=int, default=1000, show_default=True, help="Resampled data sets.")
@level_option()
@seed_option()
@click.option("--html", type=file, help="Write an HTML report.")
@output_option("Write the result here, as JSON.")
@as_json
def validate(data: tuple[str, ...], **options: Any) -> None:
    """Compute the recommended metrics of one model, or of several that are compared, with intervals.

    For each model give one npz file with labels (N,) and probabilities or logits (N, C), or decisions (N,) with -1 for
    no valid output. Optional arrays are groups (N,), class_names (C,) and metadata_KEY (N,), which defines subgroups.
    Names of classes come from --classes, the task, the recommendation or class_names. Groups and metadata of several
    models are those of the first file.

    In a task of two classes, uncertainties (N,), or the logits of members (N, C) as logits_1, logits_2, ..., give
    uncertainty-aware scores; a file of members only is judged by their mean probabilities.

    \b
    Examples:
      lifelong validate test.npz --recommendation found.json --threshold BA=0.8 --html report.html
      lifelong validate old=old.npz new=new.npz --task lesions
      lifelong validate test.npz --task lesions --metric my_metrics:LOSS
      lifelong validate test.npz --task lesions --members a.npy --members b.npy --html report.html

    The command exits with 3 if thresholds are given and no model reaches all of them by the worse end of the interval.
    """
    files = {name: read_outputs(path) for name, path in data_by_model(data).items()}
    recommendation, names, thresholds = _judged_by(options, files)
    files = {name: with_indices(one, names) for name, one in files.items()}
    found = _found(recommendation, names, thresholds, files, options)
    if options["cut_offs"] and not _needs_cut_offs(recommendation, files):
        echo("--cut-offs is not used: no metric and no decision rule chooses a cut-off.", err=True)
    _deliver(found, options)
    if thresholds and not _accepted(found):
        raise click.exceptions.Exit(NOT_ACCEPTED)


def _judged_by(
    options: dict[str, Any], files: dict[str, LabelledOutputs]
) -> tuple[Recommendation, tuple[str, ...] | None, list[AcceptanceThreshold]]:
    """The recommendation, class names and thresholds: of files and options, else of the task."""
    if (options["recommendation"] is None) == (options["task"] is None):
        raise click.UsageError("give either --recommendation or --task.")
    names: tuple[str, ...] | None = None
    attached_thresholds: list[AcceptanceThreshold] = []
    if options["task"] is not None:
        with connect() as connection:
            names = tuple(find_task(connection, options["task"]).class_names)
            attached = readable(connection, options["task"])
        if attached is None or attached.recommendation is None:
            raise InvalidInputError(
                f"{options['task']} has no recommendation.",
                field="--task",
                hint=f"Attach one: `lifelong recommend --attach {options['task']}`.",
            )
        recommendation, attached_thresholds = attached.recommendation, list(attached.thresholds)
    else:
        recommendation, names = _read_recommendation(options["recommendation"])
    if options["classes"] is not None:
        given_names = tuple(composed(name.strip()) for name in options["classes"].split(","))
        names = _same_names(names, given_names, "--classes")
    for data in files.values():
        names = _same_names(names, data.class_names, "class_names")
    given = [parse_threshold(text, names) for text in options["thresholds"]]
    return recommendation, names, given or attached_thresholds


def _same_names(
    known: tuple[str, ...] | None, given: tuple[str, ...] | None, field: str
) -> tuple[str, ...] | None:
    """The names of the classes; another order in one place would swap costs and target classes."""
    if known is not None and given is not None and known != given:
        raise InvalidInputError(
            escape_controls(
                f"the classes are {', '.join(given)} here, but {', '.join(known)} in the recommendation, task or file"
                " before."
            ),
            field=field,
            hint="Use the same names in the same order.",
        )
    return known if given is None else given


def _read_recommendation(path: Path) -> tuple[Recommendation, tuple[str, ...] | None]:
    """The recommendation in a file, or that of the interview in it, with the names of the classes if known."""
    content = path.read_bytes()
    with name_file_in_errors(path, InvalidInputError):
        if HISTORY.search(content):
            interview = Interview.from_json(content)
            return interview.recommendation(), interview.class_names
        recommendation = Recommendation.from_json(content)
        return recommendation, recommendation.class_names


def _found(
    recommendation: Recommendation,
    names: tuple[str, ...] | None,
    thresholds: list[AcceptanceThreshold],
    read: dict[str, LabelledOutputs],
    options: dict[str, Any],
) -> ValidationResult | ModelComparison:
    first = next(iter(read.values()))
    outputs = model_outputs(read, names, options)
    uncertainty = settings_of(options)
    if uncertainty is not None and not any(_has_uncertainties(one) for one in outputs.values()):
        raise click.UsageError(
            "give uncertainties: --uncertainties, --members, or arrays of the labelled data."
        )
    setting: dict[str, Any] = {
        "groups": first.groups,
        "metadata": first.metadata,
        "class_names": names,
        "thresholds": thresholds,
        "replicates": options["replicates"],
        "level": options["level"],
        "rng": options["seed"],
        "uncertainty_settings": uncertainty,
        "aggregation": options["aggregate"].replace("-", "_"),
        "custom": load_metrics(options["custom"]),
    }
    if len(outputs) > 1:
        return compare(recommendation, first.labels, outputs, **setting)
    ((name, only),) = outputs.items()
    return validate_one(
        recommendation,
        first.labels,
        name=name,
        **vars(only),
        **setting,
    )


def _has_uncertainties(outputs: ModelOutputs) -> bool:
    return outputs.uncertainties is not None or outputs.members is not None


def _needs_cut_offs(recommendation: Recommendation, read: dict[str, LabelledOutputs]) -> bool:
    """Whether a metric at a target, or the rule of a model without given decisions, needs other samples."""
    if any("target" in metric.parameters for _, metric in label_metrics(recommendation)):
        return True
    if all(data.decisions is not None for data in read.values()):
        return False
    classes = recommendation.fingerprint.number_of_classes or 2
    return needs_other_cases(recommended_rule(recommendation), classes)


def _accepted(outcome: ValidationResult | ModelComparison) -> bool:
    """Whether a model reaches every threshold."""
    return any(result.accepted for result in results_of(outcome))


def results_of(outcome: ValidationResult | ModelComparison) -> list[ValidationResult]:
    """The result of each model."""
    return [outcome] if isinstance(outcome, ValidationResult) else list(outcome.results.values())


def _deliver(outcome: ValidationResult | ModelComparison, options: dict[str, Any]) -> None:
    is_asked = options["html"] is not None
    if isinstance(outcome, ValidationResult):
        page, show = (
            validation_html(outcome) if is_asked else "",
            partial(print_validation, terminal(), outcome),
        )
    else:
        page, show = (
            comparison_html(outcome) if is_asked else "",
            partial(print_comparison, terminal(), outcome),
        )
    deliver(outcome.to_json(), page, options, show)
