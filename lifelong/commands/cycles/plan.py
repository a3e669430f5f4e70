"""`lifelong plan`: how many samples an estimate needs, as a table and in words."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json
from lifelong.commands.cycles.inputs import (
    fitting_names,
    name_file_in_errors,
    parse_class_names,
    parse_numbers,
    read_calibration,
)
from lifelong.printing import echo
from lifelong.rich_console import Console
from lifelong_core.deploy import quantifier
from lifelong_core.deploy.adaptation.adapt import DEFAULT_QUANTIFIER
from lifelong_core.deploy.adaptation.planning import SamplePlan, plan_samples
from lifelong_core.design.report.words import name_classes
from lifelong_core.values.errors import UnidentifiableError

SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000)
"""Windows that a plan shows."""
USUAL_HALF_WIDTH = 0.05
WIDEST_TABLE = 12
"""With more classes only the median and the widest are shown."""
UNKNOWN = 1.0
"""An interval of a share that would reach this far to both sides says nothing."""


@click.command(short_help="Plan how many samples an estimate needs.")
@click.argument("calibration", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--classes", help="Class names, separated by commas; or only how many classes there are.")
@click.option("--method", help="The quantifier. Default: the one that the monitor uses.")
@click.option("--prevalence", help="Expected prevalence of each class, e.g. 0.9,0.1.")
@click.option("--half-width", type=float, help="Half-width of the intervals to reach, e.g. 0.03.")
@click.option("--accuracy", type=float, help="Without CALIBRATION: balanced accuracy of the model.")
@click.option(
    "--cases",
    type=int,
    default=500,
    show_default=True,
    help="With --accuracy: calibration cases of each class.",
)
@as_json
def plan(calibration: Path | None, **options: Any) -> None:
    """Plan the size of a window: how wide are the intervals of the estimated prevalence?

    CALIBRATION is a file of labelled logits, npz or CSV, as for `lifelong calibrate`. Without it, --classes and
    --accuracy give a rule of thumb.

    \b
    Examples:
      lifelong plan calibration.npz --prevalence 0.9,0.1 --half-width 0.03
      lifelong plan --classes 2 --accuracy 0.9 --half-width 0.03
    """
    if calibration is None and (options["accuracy"] is None or options["classes"] is None):
        raise click.UsageError("give the file CALIBRATION, or --classes and --accuracy.")
    if calibration is not None and options["accuracy"] is not None:
        raise click.UsageError("--accuracy is for plans without a calibration set.")
    _print_plan(calibration, options)


def _print_plan(calibration: Path | None, options: dict[str, Any]) -> None:
    names = parse_class_names(options["classes"])
    prevalence = parse_numbers(options["prevalence"], field="--prevalence")
    cautions: tuple[str, ...] = ()
    if calibration is None:
        sample_plan = SamplePlan.assumed(
            len(names or ()), options["accuracy"], options["cases"], prevalence=prevalence
        )
    else:
        data = read_calibration(calibration, names)
        with name_file_in_errors(calibration, UnidentifiableError):
            fitted = quantifier(options["method"] or DEFAULT_QUANTIFIER).fit(data)
        sample_plan = plan_samples(fitted, prevalence=prevalence)
        cautions = fitted.cautions
    names = fitting_names(names, sample_plan.prevalence.size)
    for caution in cautions:
        echo(f"Caution: {name_classes(caution, names)}", fg="yellow", err=True)
    if options["as_json"]:
        echo(json.dumps({"class_names": names, **_findings(sample_plan, options["half_width"])}))
        return
    _print_table(sample_plan, names, options["half_width"])


def _findings(plan: SamplePlan, half_width: float | None) -> dict[str, Any]:
    """The plan and what follows from it, as JSON values; what is unknown or out of reach is null."""
    wanted = USUAL_HALF_WIDTH if half_width is None else half_width
    cases = plan.cases_needed(wanted)
    return {
        "plan": plan.to_document(),
        "half_widths": {str(size): _known(plan.half_widths(size)) for size in SIZES},
        "floor": _known(plan.floor()),
        "half_width": wanted,
        "size_needed": plan.size_needed(wanted),
        "cases_needed": None if cases is None else cases.tolist(),
        "size_needed_then": None if cases is None else plan.extend(cases).size_needed(wanted),
    }


def _known(half_widths: Any) -> list[float | None]:
    return [float(value) if value < UNKNOWN else None for value in half_widths]


def _plus_minus(half_width: float) -> str:
    return f"±{half_width:.3f}" if half_width < UNKNOWN else "unknown"


def _print_table(plan: SamplePlan, names: Sequence[str], half_width: float | None) -> None:
    from rich.table import Table

    findings = _findings(plan, half_width)
    table = Table(box=None, header_style="bold")
    few = len(names) <= WIDEST_TABLE
    for column in ("window", *(names if few else ("median class", "widest class"))):
        table.add_column(column, justify="right")
    if few:
        table.add_row("expected", *(f"{share:.3f}" for share in plan.prevalence))
    for label, values in (
        *((f"{size:,}", plan.half_widths(size)) for size in SIZES),
        ("endless", plan.floor()),
    ):
        shown = values if few else (sorted(values)[len(names) // 2], max(values))
        table.add_row(label, *(_plus_minus(value) for value in shown))
    echo(
        f"Half-widths of the {100 * plan.confidence:g} % intervals by "
        + ("a rule of thumb" if plan.method == "assumed" else plan.method)
        + f", with {round(plan.cases.min()):,} or more calibration cases of each class:"
    )
    Console().print(table)
    for sentence in _advice(plan, names, findings):
        echo(sentence)


def _advice(plan: SamplePlan, names: Sequence[str], findings: dict[str, Any]) -> list[str]:
    """What to do, in words."""
    wanted, size = findings["half_width"], findings["size_needed"]
    cases, then = findings["cases_needed"], findings["size_needed_then"]
    further = ", ".join(
        f"{count:,} of {name}" for name, count in zip(names, cases or [0] * len(names), strict=True) if count
    )
    floor = plan.floor()
    sentences: list[str] = []
    unknown = [name for name, value in zip(names, floor, strict=True) if value >= UNKNOWN]
    if unknown:
        sentences.append(
            f"The shares of these classes cannot be estimated with this calibration set: {_some(unknown)}."
        )
    if size is not None:
        sentences.append(f"For ±{wanted:g} in every class a window of {size:,} samples is enough.")
        if further and then is not None:
            sentences.append(f"With more calibration cases ({further}) {then:,} would be.")
    else:
        if not unknown:
            sentences.append(
                f"No window is large enough for ±{wanted:g}: the calibration set alone leaves "
                f"±{floor.max():.3f} for {names[int(floor.argmax())]}."
            )
        if plan.calibration_degrees.min() == 0:
            sentences.append(
                "It has too few independent cases to show how much they differ: collect several of each class, then "
                "plan anew."
            )
        elif further and then is not None:
            sentences.append(
                f"Add about this many calibration cases: {further}. Then a window of {then:,} samples is enough."
            )
        else:
            sentences.append(f"No calibration set of realistic size reaches ±{wanted:g}.")
    return [
        *sentences,
        "Patients with several images count little more than once: plan with the number of patients.",
    ]


def _some(names: Sequence[str]) -> str:
    """The names, or the first of them where they are many."""
    if len(names) <= WIDEST_TABLE:
        return ", ".join(names)
    return f"{', '.join(names[:WIDEST_TABLE])} and {len(names) - WIDEST_TABLE} more"
