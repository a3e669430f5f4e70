"""`lifelong adapt`: one cycle offline, and how many samples it needs; neither service nor database."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lifelong_core.deploy import (
        AdaptationPolicy,
        AdaptationReport,
        AssumptionTest,
        LabeledLogits,
        PostProcessingHead,
    )
    from lifelong_core.deploy.planning import SamplePlan
    from lifelong_core.errors import InvalidInputError

SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000)
"""Windows that a plan shows."""
USUAL_HALF_WIDTH = 0.05
WIDEST_TABLE = 12
"""With more classes only the median and the widest are shown."""
MOST_CLASSES = 10_000
UNKNOWN = 1.0
"""An interval of a share that would reach this far to both sides says nothing."""

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
        _plan(calibration, options)
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
    from lifelong_core.deploy import adapt as adapt_once
    from lifelong_core.deploy.adaptation import DEFAULT_QUANTIFIER
    from lifelong_core.errors import InvalidInputError

    out: Path | None = options["out"]
    _check_out(out)
    data = _calibration(calibration)
    head = _head(data, options)
    logits, groups = _window(window)
    report = adapt_once(
        data,
        logits,
        head,
        _policy(options["policy"]),
        groups=groups,
        method=options["method"] or DEFAULT_QUANTIFIER,
    )
    for reason in report.reasons:
        if reason.code == "window_invalid":
            raise InvalidInputError(f"{window}: {reason.text}", field="WINDOW")
    if options["as_json"]:
        click.echo(report.to_json())
    else:
        _print_report(report, head)
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


def _plan(calibration: Path | None, options: dict[str, Any]) -> None:
    import json

    from lifelong_core.deploy import quantifier
    from lifelong_core.deploy.adaptation import DEFAULT_QUANTIFIER
    from lifelong_core.deploy.planning import SamplePlan, plan_samples
    from lifelong_core.errors import UnidentifiableError

    names = _class_names(options["classes"])
    prevalence = _numbers(options["prevalence"], field="--prevalence")
    if calibration is None:
        plan = SamplePlan.assumed(
            len(names or ()), options["accuracy"], options["cases"], prevalence=prevalence
        )
    else:
        data = _calibration(calibration)
        with _naming(calibration, UnidentifiableError):
            fitted = quantifier(options["method"] or DEFAULT_QUANTIFIER).fit(data)
        plan = plan_samples(fitted, prevalence=prevalence)
        for caution in fitted.cautions:
            click.secho(f"Caution: {caution}", fg="yellow", err=True)
    names = _fitting(names, plan.prevalence.size)
    if options["as_json"]:
        click.echo(json.dumps({"class_names": names, **_findings(plan, options["half_width"])}))
        return
    _print_plan(plan, names, options["half_width"])


def _findings(plan: "SamplePlan", half_width: float | None) -> dict[str, Any]:
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
        "size_needed_then": None if cases is None else plan.extended(cases).size_needed(wanted),
    }


def _known(half_widths: Any) -> list[float | None]:
    return [float(value) if value < UNKNOWN else None for value in half_widths]


def _plus_minus(half_width: float) -> str:
    return f"±{half_width:.3f}" if half_width < UNKNOWN else "unknown"


def _print_plan(plan: "SamplePlan", names: "Sequence[str]", half_width: float | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    found = _findings(plan, half_width)
    table = Table(box=None, header_style="bold")
    few = len(names) <= WIDEST_TABLE
    for column in ("window", *(names if few else ("median class", "widest class"))):
        table.add_column(escape(column), justify="right")
    if few:
        table.add_row("expected", *(f"{share:.3f}" for share in plan.prevalence))
    for label, values in (
        *((f"{size:,}", plan.half_widths(size)) for size in SIZES),
        ("endless", plan.floor()),
    ):
        shown = values if few else (sorted(values)[len(names) // 2], max(values))
        table.add_row(label, *(_plus_minus(value) for value in shown))
    click.echo(
        f"Half-widths of the {100 * plan.confidence:g} % intervals by "
        + ("a rule of thumb" if plan.method == "assumed" else plan.method)
        + f", with {round(plan.cases.min()):,} or more calibration cases of each class:"
    )
    Console().print(table)
    for sentence in _advice(plan, names, found):
        click.echo(sentence)


def _advice(plan: "SamplePlan", names: "Sequence[str]", found: dict[str, Any]) -> list[str]:
    """What to do, in words."""
    wanted, size = found["half_width"], found["size_needed"]
    cases, then = found["cases_needed"], found["size_needed_then"]
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
    if not unknown and plan.disagreement.max() > plan.calibration_variance.sum(axis=1).max():
        sentences.append(
            "Most of what is left comes from the method's assumptions, which do not quite fit this calibration set: "
            "try another --method before you collect more cases."
        )
    return [
        *sentences,
        "Patients with several images count little more than once: plan with the number of patients.",
    ]


def _some(names: "Sequence[str]") -> str:
    """The names, or the first of them where they are many."""
    if len(names) <= WIDEST_TABLE:
        return ", ".join(names)
    return f"{', '.join(names[:WIDEST_TABLE])} and {len(names) - WIDEST_TABLE} more"


def _print_report(report: "AdaptationReport", head: "PostProcessingHead") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    colour = {"swap": "green", "refuse": "red"}.get(report.outcome, "white")
    click.secho(f"{report.outcome} ", fg=colour, bold=True, nl=False)
    click.echo(f"({report.samples:,} samples)")
    for reason in report.reasons:
        click.echo(f"  - {reason.text}")
    estimate, gain = report.prevalence, report.expected_gain
    if estimate is not None:
        table = Table(box=None, header_style="bold")
        for column in ("class", "assumed", "estimated", f"{100 * estimate.confidence:g} % interval"):
            table.add_column(column, justify="left" if column == "class" else "right")
        for k, name in enumerate(head.class_names):
            interval = f"{estimate.low[k]:.3f} to {estimate.high[k]:.3f}"
            table.add_row(
                escape(name), f"{head.assumed_prevalence[k]:.3f}", f"{estimate.prevalence[k]:.3f}", interval
            )
        Console().print(table)
        for caution in estimate.cautions:
            click.secho(f"Caution: {caution}", fg="yellow")
    _print_assumption(report.assumption_test)
    if gain is not None:
        click.echo(
            f"Expected cost of a decision: {gain.current_cost:.4f} now, {gain.candidate_cost:.4f} with a new head; "
            f"gain {gain.value:.4f} ({gain.low:.4f} to {gain.high:.4f})."
        )


def _print_assumption(test: "AssumptionTest | None") -> None:
    """Whether anything but the prevalence has changed."""
    if test is None:
        return
    verdict = "more has changed" if test.rejected else "nothing speaks against it"
    promise = "" if test.reliable else "; the calibration set is too small for this test to keep its level"
    click.echo(
        f"Only the prevalence has changed? {verdict} (p = {test.p_value:.2g}, level {test.level:g}){promise}."
    )
    for item in test.disagreements if test.rejected else ():
        click.echo(f"  - {item.text}")


def _calibration(path: Path) -> "LabeledLogits":
    from lifelong_core.deploy import LabeledLogits
    from lifelong_core.errors import InvalidInputError

    with _naming(path, InvalidInputError):
        return LabeledLogits.from_bytes(path.read_bytes())


@contextmanager
def _naming(path: Path, kind: "type[InvalidInputError]") -> "Iterator[None]":
    """Errors of this kind are owed to what the file holds: they name it."""
    try:
        yield
    except kind as error:
        raise type(error)(f"{path}: {error.message}", field=error.field, mend=error.mend) from error


def _head(data: "LabeledLogits", options: dict[str, Any]) -> "PostProcessingHead":
    from lifelong.commands.tasks import parse_costs
    from lifelong_core.deploy import PostProcessingHead, fit_head
    from lifelong_core.errors import InvalidInputError

    if options["head"] is not None:
        for name in ("costs", "classes"):
            if options[name] is not None:
                raise InvalidInputError("the head says it already.", field=f"--{name}")
        return PostProcessingHead.from_json(options["head"].read_text(errors="replace"))
    names = _fitting(_class_names(options["classes"]), data.classes)
    return fit_head(data, parse_costs(options["costs"], data.classes), class_names=names)


def _window(path: Path) -> tuple[Any, Any]:
    """Logits and groups (or None) of an npy or npz file."""
    import zipfile
    import zlib

    import numpy as np

    from lifelong_core.errors import InvalidInputError

    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return loaded, None
            return loaded["logits"], loaded.get("groups")
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInputError(
            f"{path} is neither an npy file nor an npz file with the array logits.",
            field="WINDOW",
            mend="Write it with numpy.save(file, logits).",
        ) from error


def _policy(text: str | None) -> "AdaptationPolicy":
    import json
    from dataclasses import fields

    from lifelong_core.deploy import AdaptationPolicy
    from lifelong_core.errors import InvalidInputError

    if text is None:
        return AdaptationPolicy()
    try:
        changed: Any = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text())
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{text[:80]!r} is neither a JSON object nor a readable file of one.", field="--policy"
        ) from error
    known = [item.name for item in fields(AdaptationPolicy)]
    unknown = [str(name) for name in changed if name not in known] if isinstance(changed, dict) else ["This"]
    if unknown:
        raise InvalidInputError(
            f"{unknown[0][:80]!r} is no policy setting.",
            field="--policy",
            mend=f"They are {', '.join(known)}.",
        )
    return AdaptationPolicy(**changed)


def _class_names(text: str | None) -> list[str] | None:
    """Names separated by commas; a whole number stands for as many classes."""
    from lifelong_core.deploy.checks import as_class_names
    from lifelong_core.errors import InvalidInputError

    if text is None:
        return None
    if text.strip().isdecimal():
        return [str(k) for k in range(min(int(text), MOST_CLASSES))]
    try:
        return list(as_class_names([part.strip() for part in text.split(",")]))
    except InvalidInputError as error:
        raise InvalidInputError(error.message, field="--classes", mend=error.mend) from error


def _fitting(names: list[str] | None, classes: int) -> list[str]:
    from lifelong_core.errors import InvalidInputError

    if names is not None and len(names) != classes:
        raise InvalidInputError(f"expected {classes} names, got {len(names)}.", field="--classes")
    return names or [str(k) for k in range(classes)]


def _numbers(text: str | None, *, field: str) -> list[float] | None:
    from lifelong_core.errors import InvalidInputError

    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InvalidInputError("expected numbers, separated by commas.", field=field) from error
