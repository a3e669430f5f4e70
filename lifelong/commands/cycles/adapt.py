"""`lifelong adapt`: one cycle offline; neither service nor database."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json, output_option
from lifelong.commands.cycles.inputs import (
    given_names,
    name_file_in_errors,
    order_of_values,
    read_calibration,
    read_head,
    read_policy,
    read_times,
    read_window,
)
from lifelong.commands.cycles.report_text import print_outcome, print_report
from lifelong.commands.models.tasks import decision_rule_option
from lifelong.commands.results import write_texts
from lifelong.printing import echo
from lifelong_core.deploy import AdaptationReport
from lifelong_core.deploy import adapt as adapt_once
from lifelong_core.deploy.adaptation.adapt import DEFAULT_QUANTIFIER
from lifelong_core.runtime.memory import keep_free_memory
from lifelong_core.values.arrays import as_logits
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.mistaken_probabilities import expect_logits

LARGEST_CHANGE = 1.8
"""From this L1 distance on (of 2), the parts before and after a change hold different classes: rows sorted by class."""

existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Run one cycle offline, from files.")
@click.argument("calibration", type=existing_file)
@click.argument("window", type=existing_file)
@click.option(
    "--head",
    type=existing_file,
    help="JSON of the head that serves (`lifelong heads show`). Default: the model's first.",
)
@click.option(
    "--costs", help="JSON matrix (or its file): rows true class, columns decision. Default: 0-1 costs."
)
@decision_rule_option
@click.option("--classes", help="Class names, separated by commas; or only how many classes there are.")
@click.option("--method", help="The quantifier. Default: the one that the monitor uses.")
@click.option(
    "--policy", help="JSON object (or its file) of the settings to change, e.g. '{\"level\": 0.001}'."
)
@click.option(
    "--label-error-rate",
    type=click.FloatRange(0, 1, max_open=True),
    help="Largest share of the calibration labels of each class that may be wrong: intervals allow for it. Default: "
    "LIFELONG_LABEL_ERROR_RATE.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    default=("AC", "EC"),
    show_default=True,
    help="Metric to estimate without labels, such as BA, PPV or TPR[2]; may be repeated.",
)
@click.option(
    "--order",
    type=click.Choice(["none", "time"]),
    help="time: the rows of WINDOW are in order of time, and changes within it are looked for; none: they are in any"
    " order.  [default: none, with --times: time]",
)
@click.option(
    "--times",
    metavar="FILE_OR_COLUMN",
    help="Times (N,) of the rows, ISO 8601 or seconds since 1970: an npy file, or an array or column of WINDOW. They"
    " order the rows.",
)
@output_option("Write the new head here, if there is one.")
@as_json
def adapt(calibration: Path, window: Path, **options: Any) -> None:
    """Judge one window of unlabelled logits: has the prevalence shifted, and would a new head pay?

    CALIBRATION is an npz file with logits (N, C), labels (N,) and perhaps groups (N,); WINDOW an npy file with
    logits (N, C), or an npz file with logits and groups. Either may be a CSV file with the columns logit_0,
    logit_1, ..., group and, for the calibration, label. Nothing is sent or published. Without --order or --times
    the result does not depend on the order of the rows.

    \b
    Examples:
      lifelong adapt calibration.npz window.npy
      lifelong adapt calibration.npz window.npz --times acquired_at
      lifelong adapt calibration.npz window.npy --head head.json --output new_head.json
    """
    _judge(calibration, window, options)


def _judge(calibration: Path, window: Path, options: dict[str, Any]) -> None:
    out: Path | None = options["output"]
    _check_out(out)
    names = given_names(calibration, options)
    data = read_calibration(calibration, names)
    head = read_head(data, options)
    logits, groups = read_window(window, names or head.class_names, times=options["times"])
    with name_file_in_errors(window, InvalidInputError):
        expect_logits(as_logits(logits, field="WINDOW"), field="WINDOW")
    times = read_times(options["times"], window, len(logits))
    if times is not None and options["order"] == "none":
        raise InvalidInputError("times are an order.", field="--order", hint="Leave --times or --order out.")
    is_ordered = times is not None or options["order"] == "time"
    if options["order"] != "time" or times is not None:
        order = times.argsort(kind="stable") if times is not None else order_of_values(logits, groups)
        logits, times = logits[order], None if times is None else times[order]
        groups = None if groups is None else [groups[row] for row in order]
    policy = read_policy(options["policy"], options["label_error_rate"])
    keep_free_memory()
    report = adapt_once(
        data,
        logits,
        head,
        policy if is_ordered else replace(policy, change_level=0.0),
        groups=groups,
        times=times,
        method=options["method"] or DEFAULT_QUANTIFIER,
        performance_metrics=options["metrics"],
    )
    if times is None:
        _expect_not_sorted(report)
    for reason in report.reasons:
        if reason.code == "window_invalid":
            raise InvalidInputError(f"{window}: {reason.text}", field="WINDOW")
    # The file first: printing fails where the reader of the output has gone.
    failure = None
    if report.candidate is not None:
        failure = write_texts([(out, report.candidate.to_json(), "--output")])
    if options["as_json"]:
        echo(report.to_json())
    else:
        print_outcome(report.outcome, f"{report.samples:,} samples")
        print_report(report, head.class_names)
        if not is_ordered:
            echo(
                "No order of the rows was given; --times or --order time looks for changes within the window."
            )
    if failure is not None:
        raise failure
    if out is not None and not options["as_json"]:
        echo(f"The new head is in {out}." if report.candidate else f"No new head: {out} is not written.")


def _expect_not_sorted(report: AdaptationReport) -> None:
    """Refuse rows that are sorted by class, not by time: the last class alone would be judged."""
    if any(change.size >= LARGEST_CHANGE for change in report.change_points):
        raise InvalidInputError(
            "the rows look sorted by class, not by time: within the window one class replaces another.",
            field="--order",
            hint="Use --order none; or give the times of the rows: --times.",
        )


def _check_out(out: Path | None) -> None:
    """Is there a place for the new head? Asked before the work, not after it."""
    if out is None:
        return
    problem = None
    if not out.parent.is_dir():
        problem = f"there is no folder {out.parent}."
    elif not os.access(out if out.exists() else out.parent, os.W_OK):
        problem = f"{out} cannot be written: no permission."
    if problem is not None:
        raise InvalidInputError(problem, field="--output")
