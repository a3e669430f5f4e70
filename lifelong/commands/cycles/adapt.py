"""`lifelong adapt`: one cycle offline, and how many samples it needs; neither service nor database."""

from pathlib import Path
from typing import Any

import click

from lifelong.commands.cycles.inputs import (
    name_file_in_errors,
    read_calibration,
    read_head,
    read_policy,
    read_window,
)
from lifelong.commands.cycles.plan import print_plan
from lifelong.commands.cycles.report_text import print_outcome, print_report

existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="One cycle offline, from files; --plan: how many samples it needs.")
@click.argument("calibration", type=existing_file, required=False)
@click.argument("window", type=existing_file, required=False)
@click.option(
    "--head",
    type=existing_file,
    help="JSON of the head that serves (`lifelong heads show`). Default: the model's first.",
)
@click.option(
    "--costs", help="JSON matrix (or its file): rows true class, columns decision. Default: 0-1 costs."
)
@click.option("--classes", help="Class names, separated by commas; or only how many classes there are.")
@click.option("--method", help="The quantifier. Default: the one that the monitor uses.")
@click.option(
    "--policy", help="JSON object (or its file) of the settings to change, e.g. '{\"level\": 0.001}'."
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the new head here, if there is one.")
@click.option("--plan", is_flag=True, help="Print how many samples are needed instead of judging a window.")
@click.option("--prevalence", help="With --plan: expected prevalence of each class, e.g. 0.9,0.1.")
@click.option(
    "--half-width", type=float, help="With --plan: how near to the truth the estimate shall be, e.g. 0.03."
)
@click.option(
    "--accuracy", type=float, help="With --plan, without CALIBRATION: balanced accuracy of the model."
)
@click.option(
    "--cases",
    type=int,
    default=500,
    show_default=True,
    help="With --accuracy: calibration cases of each class.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def adapt(calibration: Path | None, window: Path | None, **options: Any) -> None:
    """Judge one window of unlabelled logits: has the prevalence shifted, and would a new head pay?

    CALIBRATION is an npz file with logits (N, C), labels (N,) and perhaps groups (N,); WINDOW an npy file with
    logits (N, C), or an npz file with logits and groups. Nothing is sent or published.

    \b
    Examples:
      lifelong adapt calibration.npz window.npy
      lifelong adapt calibration.npz window.npy --head head.json --out new_head.json
      lifelong adapt --plan calibration.npz --prevalence 0.9,0.1 --half-width 0.03
      lifelong adapt --plan --classes 2 --accuracy 0.9 --half-width 0.03
    """
    _check_arguments(calibration, window, options)
    if options["plan"]:
        print_plan(calibration, options)
    elif calibration is not None and window is not None:
        _judge(calibration, window, options)


def _check_arguments(calibration: Path | None, window: Path | None, options: dict[str, Any]) -> None:
    if options["plan"]:
        if window is not None:
            raise click.UsageError("--plan looks at no window: give the calibration set alone.")
        if calibration is None and (options["accuracy"] is None or options["classes"] is None):
            raise click.UsageError("--plan needs a calibration set, or --classes and --accuracy.")
        if calibration is not None and options["accuracy"] is not None:
            raise click.UsageError("--accuracy is for plans without a calibration set.")
        for name in ("head", "costs", "policy", "out"):
            if options[name] is not None:
                raise click.UsageError(f"--{name} has no meaning with --plan.")
        return
    if calibration is None or window is None:
        raise click.UsageError("give the files CALIBRATION and WINDOW, or --plan.")
    for name in ("prevalence", "half_width", "accuracy"):
        if options[name] is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} belongs to --plan.")


def _judge(calibration: Path, window: Path, options: dict[str, Any]) -> None:
    from lifelong_core.arrays import as_logits, expect_logits
    from lifelong_core.deploy import adapt as adapt_once
    from lifelong_core.deploy.adaptation.adapt import DEFAULT_QUANTIFIER
    from lifelong_core.errors import InvalidInputError

    out: Path | None = options["out"]
    _check_out(out)
    data = read_calibration(calibration)
    head = read_head(data, options)
    logits, groups = read_window(window)
    with name_file_in_errors(window, InvalidInputError):
        expect_logits(as_logits(logits, field="WINDOW"), field="WINDOW")
    report = adapt_once(
        data,
        logits,
        head,
        read_policy(options["policy"]),
        groups=groups,
        method=options["method"] or DEFAULT_QUANTIFIER,
    )
    for reason in report.reasons:
        if reason.code == "window_invalid":
            raise InvalidInputError(f"{window}: {reason.text}", field="WINDOW")
    if options["as_json"]:
        click.echo(report.to_json())
    else:
        print_outcome(report.outcome, f"{report.samples:,} samples")
        print_report(report, head.class_names)
    if out is None:
        return
    if report.candidate is not None:
        try:
            out.write_text(report.candidate.to_json() + "\n")
        except OSError as error:
            raise InvalidInputError(
                f"{out} cannot be written ({error.strerror or error}).", field="--out"
            ) from error
    if not options["as_json"]:
        click.echo(
            f"The new head is in {out}." if report.candidate else f"No new head: {out} is not written."
        )


def _check_out(out: Path | None) -> None:
    """Is there a place for the new head? Asked before the work, not after it."""
    import os

    from lifelong_core.errors import InvalidInputError

    if out is None:
        return
    problem = None
    if out.is_dir():
        problem = f"{out} is a folder, not a file."
    elif not out.parent.is_dir():
        problem = f"there is no folder {out.parent}."
    elif not os.access(out if out.exists() else out.parent, os.W_OK):
        problem = f"{out} cannot be written: no permission."
    if problem is not None:
        raise InvalidInputError(problem, field="--out")
