"""`lifelong heads`: the post-processing heads of a model."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import (
    CommandGroup,
    as_json,
    environment_option,
    model_argument,
    model_option,
)
from lifelong.commands.connection import Connection, connect
from lifelong.commands.operation.processes import place_name
from lifelong.commands.operation.processes import workers as workers_command
from lifelong.commands.operation_command import operation_command
from lifelong.commands.tables import print_rows
from lifelong.printing import echo
from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.entities.cycles import CycleAnswer
from lifelong_core.entities.head_differences import HeadDifference
from lifelong_core.entities.heads import HeadAnswer, HeadInForce, PinAnswer
from lifelong_core.operations.administration.environments import ListEnvironments
from lifelong_core.operations.administration.processes import DEFAULT_HEAD, ListWorkers, WorkerAnswer
from lifelong_core.operations.cycles import LARGEST_LIST, ApproveCycle, ListCycles, RejectCycle
from lifelong_core.operations.head_differences import DiffHeads, DiffProposal
from lifelong_core.operations.heads import ListHeads, NewHead, NewPin, RollBack, ShowHead, Unpin
from lifelong_core.operations.models import ShowModel
from lifelong_core.store.heads.outlook import describe_users

MOST_SHARES = 12
"""Classes of a proposal that are shown, those that move most."""


def _summary(head: PostProcessingHead) -> dict[str, Any]:
    prevalence = zip(head.class_names, head.assumed_prevalence.tolist(), strict=True)
    return {"assumed_prevalence": ", ".join(f"{name} {share:.3f}" for name, share in prevalence)}


@click.group(cls=CommandGroup, short_help="List, publish, roll back, pin and approve heads.")
def heads() -> None:
    """Post-processing heads: list, show, publish, roll back, pin, and approve what cycles propose."""


@heads.command("list")
@model_argument
@as_json
def list_(model: str, *, as_json: bool) -> None:
    """List the heads of MODEL, where each is active, how many workers run it there, and where it is pinned."""
    with connect() as connection:
        listed = connection.send(ListHeads(model=model))
        shown = connection.send(ShowModel(model=model))
        workers = [worker for worker in connection.send(ListWorkers()).workers if not worker.lost]
        environments = connection.send(ListEnvironments()).environments
        is_sound = {
            pin.environment: not listed.damaged or not _is_damaged(connection, model, pin, listed.damaged)
            for pin in listed.pins
        }
    active: dict[int, list[str]] = {}
    for place, version in shown.heads.items():
        active.setdefault(version, []).append(place)
    pinned: dict[int, list[str]] = {}
    for pin in listed.pins:
        version = shown.heads.get(pin.environment or DEFAULT_HEAD, shown.heads.get(DEFAULT_HEAD))
        if version is not None and is_sound[pin.environment]:
            pinned.setdefault(version, []).append(f"{place_name(pin.environment)}: {pin.reason}")
    rows = [
        {
            "version": head.version,
            "active_in": ", ".join(sorted(place_name(place) for place in active.get(head.version, []))),
            "workers": _running(shown.model, head.version, active.get(head.version, []), workers),
            "pinned_in": "; ".join(pinned.get(head.version, [])),
            "created_at": head.created_at,
            "created_by": head.created_by,
            "decision_rule": head.decision_rule_text,
            "expected": head.expected_criterion_text or "",
            **_summary(head.head),
        }
        for head in listed.heads
    ]
    print_rows(rows, as_json=as_json, empty="No head yet: `lifelong calibrate`.", below="assumed_prevalence")
    if rows and not as_json:
        own = [place for place in shown.heads if place != DEFAULT_HEAD]
        echo(f"The default head is {describe_users(own, environments)}.")
    for reason in sorted(set(listed.damaged.values())):
        echo(f"Warning: {reason}.", err=True)


def _is_damaged(connection: Connection, model: str, pin: PinAnswer, damaged: Mapping[int, str]) -> bool:
    """Whether the newest head of a pinned place is damaged."""
    activations = connection.send(ListHeads(model=model, environment=pin.environment)).activations
    return bool(activations) and activations[-1].head_version in damaged


def _running(model: str, version: int, places: Sequence[str], workers: Sequence[WorkerAnswer]) -> str:
    """How many of the workers run an active head in all the places where it is active, e.g. `2/2`."""
    if not places:
        return ""
    running = [
        worker
        for worker in workers
        if all(worker.heads.get(model, {}).get(place) == version for place in places)
    ]
    return f"{len(running)}/{len(workers)}"


@heads.command()
@model_argument
@environment_option("Its history; without it, that of the model's default head.")
@as_json
def history(model: str, environment: str | None, *, as_json: bool) -> None:
    """List the heads that were active in one place, newest first; --expected-sequence takes the number."""
    with connect() as connection:
        listed = connection.send(ListHeads(model=model, environment=environment))
    rows = [
        {
            "sequence": activation.sequence,
            "version": activation.head_version,
            "reason": activation.reason,
            "follows_default": activation.uses_default_head,
            "activated_at": activation.activated_at,
            "activated_by": activation.activated_by,
        }
        for activation in reversed(listed.activations)
    ]
    print_rows(rows, as_json=as_json, empty="Nothing was ever active there (sequence 0).")


@heads.command()
@model_argument
@click.argument("version", type=int)
def show(model: str, version: int) -> None:
    """Print one head of MODEL as JSON, and its decision rule in words on the standard error."""
    with connect() as connection:
        shown = connection.send(ShowHead(model=model, version=version))
    echo(shown.head.to_json())
    for line in (f"Decides by: {shown.decision_rule_text}.", shown.expected_criterion_text):
        if line is not None:
            echo(line, err=True)


@heads.command()
@model_argument
@click.argument("head", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@environment_option("Its head; without it, the model's default head.")
@click.option(
    "--expected-sequence",
    type=click.IntRange(min=0),
    help="Number of the newest activation that you know (0: none); the command fails if there is a newer one.",
)
@click.option("--digest", help="Digest of the head; a head with another digest is refused.")
@click.option(
    "--force-because",
    metavar="REASON",
    help="Take costs by which a wrong decision is cheaper than the right one; the reason goes to the audit log.",
)
def publish(
    model: str,
    head: Path,
    environment: str | None,
    expected_sequence: int | None,
    digest: str | None,
    force_because: str | None,
) -> None:
    """Publish the head in the JSON file HEAD; every worker serves it within a second."""
    document = PostProcessingHead.from_json(head.read_text(errors="replace")).to_document()
    new = NewHead(
        model=model,
        head=document,
        environment=environment,
        expected_sequence=expected_sequence,
        digest=digest,
        force_reason=force_because,
    )
    with connect() as connection:
        published = connection.send(new)
    echo(f"Published head {published.version}.")
    echo(_consequences(published, environment))


def _consequences(head: HeadInForce, environment: str | None) -> str:
    """What cycles do with a head that has just come in force, and with its calibration set."""
    is_at_risk = head.fitted_on not in (None, head.active_calibration_set)
    if environment is None or is_at_risk:
        return f"{head.calibration}\n{head.outlook}"
    return head.outlook


def _rolled_back(head: HeadInForce, call: RollBack) -> str:
    place = "as the default head" if call.environment is None else f"in {call.environment}"
    return f"Head {head.version} is active again {place}.\n{_consequences(head, call.environment)}"


def _head_in(environment: str | None) -> str:
    return "default head" if environment is None else f"head in {environment}"


def _difference(difference: HeadDifference, _: DiffHeads | DiffProposal) -> str:
    """Two heads, what differs, and how many decisions, as lines."""
    after = "the proposed head" if difference.after_version is None else f"head {difference.after_version}"
    lines = [
        f"Head {difference.before_version} {difference.before_text}.",
        f"{after.capitalize()} {difference.after_text}.",
    ]
    lines += [f"  {sentence}" for sentence in difference.sentences] or ["Both compute the same."]
    lines += [f"  {one.name}: {_number(one.before)} -> {_number(one.after)}" for one in difference.parameters]
    if (sample := difference.decisions) is not None:
        lines.append(
            f"{sample.changed:,} of the newest {sample.compared:,} decisions in {sample.environment} change."
        )
        lines += [f"  {one.prediction_id}  {one.before} -> {one.after}" for one in sample.predictions]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


heads.add_command(operation_command(DiffHeads, "diff", text=_difference))
heads.add_command(
    operation_command(
        DiffProposal,
        "diff-proposal",
        text=_difference,
        help_text="""Say how the head that CYCLE proposed or published differs from the head that it judged.

        CYCLE is the id of the cycle, or a unique beginning of it. Both heads decide about the newest predictions.
        """,
    )
)
heads.add_command(
    operation_command(
        RollBack,
        "rollback",
        text=_rolled_back,
        flags={"to_version": "--to", "pin_reason": "--pin"},
        metavars={"to_version": "VERSION", "pin_reason": "REASON"},
        examples=(
            "lifelong heads rollback resnet",
            'lifelong heads rollback resnet --environment clinic-a --pin "wrong since the new scanner"',
        ),
    )
)
heads.add_command(
    operation_command(
        NewPin,
        "pin",
        text=lambda _, call: f"Pinned: cycles leave the {_head_in(call.environment)} alone.",
    )
)
heads.add_command(
    operation_command(
        Unpin,
        "unpin",
        text=lambda _, call: f"Unpinned: cycles may replace the {_head_in(call.environment)} again.",
    )
)


@heads.command()
@model_option()
@as_json
def proposals(model: str | None, *, as_json: bool) -> None:
    """List the heads that cycles propose and that wait for approval."""
    with connect() as connection:
        listed = connection.send(ListCycles(model=model, open_proposals=True, limit=LARGEST_LIST)).cycles
        proposed = [
            _proposal(
                cycle,
                cycle.proposal,
                connection.send(ShowHead(model=cycle.model, version=cycle.head_version)),
            )
            for cycle in listed
            if cycle.proposal is not None
        ]
    if as_json:
        echo(json.dumps(proposed))
    elif not proposed:
        echo("Nothing is proposed.")
    else:
        echo("\n\n".join("\n".join(_lines(proposal)) for proposal in proposed))


heads.add_command(
    operation_command(
        ApproveCycle,
        "approve",
        text=lambda cycle, _: f"Published head {cycle.published_version} in {cycle.environment}.",
        help_text="""Publish the head that CYCLE proposed; every worker serves it within a second.

        CYCLE is the id of the cycle, or a unique beginning of it.
        """,
    )
)
heads.add_command(
    operation_command(
        RejectCycle,
        "reject",
        text=lambda cycle, _: f"Rejected: head {cycle.head_version} stays active in {cycle.environment}.",
        help_text="""Decline the head that CYCLE proposed (its id, or a unique beginning of it).

        While the present head stays active, no cycle proposes a head for practically the same prevalences again.
        """,
    )
)


def _proposal(cycle: CycleAnswer, head: PostProcessingHead, replaced: HeadAnswer) -> dict[str, Any]:
    """The head that a cycle proposes and what it would change, as JSON values."""
    return {
        "cycle": str(cycle.id),
        "model": cycle.model,
        "environment": cycle.environment,
        "judged_at": cycle.finished_at.isoformat(timespec="seconds"),
        "window_samples": cycle.window_samples,
        "replaces": replaced.version,
        "assumed_prevalence": [
            {"class": name, "now": now, "proposed": proposed}
            for name, now, proposed in zip(
                head.class_names,
                replaced.head.assumed_prevalence.tolist(),
                head.assumed_prevalence.tolist(),
                strict=True,
            )
        ],
        "cut_off": None if head.cut_off is None else {"now": replaced.head.cut_off, "proposed": head.cut_off},
        "decision_rule": describe_rule(head.decision_rule, head.class_names),
        "expected_gain": cycle.report.get("expected_gain"),
        "expected_probability_gain": cycle.report.get("expected_probability_gain"),
        "reasons": cycle.report["reasons"],
    }


def _lines(proposal: dict[str, Any]) -> list[str]:
    """Format a proposal as lines; the cycle's id has its own line, ready to be copied."""
    shares = proposal["assumed_prevalence"]
    moved = sorted(shares, key=lambda share: -abs(share["proposed"] - share["now"]))[:MOST_SHARES]
    shown = [share for share in shares if share in moved]
    changes = [f"    {share['class']}: {share['now']:.3f} -> {share['proposed']:.3f}" for share in shown]
    if len(shares) > len(shown):
        changes.append(f"    and {len(shares) - len(shown)} classes that move less")
    return [
        proposal["cycle"],
        f"  model: {proposal['model']}",
        f"  environment: {proposal['environment']}",
        f"  judged at: {proposal['judged_at']}",
        f"  assumed prevalence, head {proposal['replaces']} -> proposed:",
        *changes,
        f"  decision rule: {proposal['decision_rule']}",
        *_cut_offs(proposal["cut_off"]),
        "  because:",
        *(f"    {reason['text']}" for reason in proposal["reasons"]),
    ]


def _cut_offs(change: dict[str, float | None] | None) -> list[str]:
    if change is None:
        return []
    now = "none" if change["now"] is None else f"{change['now']:.3g}"
    return [f"  cut-off: {now} -> {change['proposed']:.3g}"]


heads.add_command(workers_command)
