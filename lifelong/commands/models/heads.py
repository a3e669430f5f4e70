"""`lifelong heads`: the post-processing heads of a model."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lifelong.commands.common import (
    CommandGroup,
    actor,
    as_json,
    environment_option,
    model_argument,
    model_option,
    open_store,
)
from lifelong.commands.operation.workers import format_running, place_name, workers
from lifelong.commands.tables import print_rows
from lifelong.printing import echo

if TYPE_CHECKING:
    from lifelong_core.deploy import PostProcessingHead
    from lifelong_core.store import Cycle, HeadRecord, Store

MOST_SHARES = 12
"""Classes of a proposal that are shown, those that move most."""

head_environment = environment_option("Its head; without it, the model's default head.")

sequence_option = click.option(
    "--expected-sequence",
    type=click.IntRange(min=0),
    help="Number of the newest activation that you know (0: none); the command fails if there is a newer one.",
)


def _summary(head: "PostProcessingHead") -> dict[str, Any]:
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
    from lifelong_core.store.heads.outlook import describe_users
    from lifelong_core.store.heads.wording import describe_expectation, describe_head_rule

    with open_store() as store:
        chosen = store.models.get(model)
        registry = store.registry()
        own = {
            environment: record.version
            for (model_id, environment), record in registry.heads.items()
            if model_id == chosen.id
        }
        active: dict[int, list[str | None]] = {}
        for environment, version in own.items():
            active.setdefault(version, []).append(environment)
        pinned: dict[int, list[str]] = {}
        for pin in registry.pins.values():
            if pin.model_id != chosen.id or (chosen.id, pin.environment) in registry.damaged:
                continue
            version = own.get(pin.environment, own.get(None))
            if version is not None:
                pinned.setdefault(version, []).append(f"{place_name(pin.environment)}: {pin.reason}")
        users = describe_users(registry, chosen)
        alive = [worker for worker in store.workers.list() if not worker.is_lost]
        rows = [
            {
                "version": record.version,
                "active_in": ", ".join(sorted(place_name(place) for place in active.get(record.version, []))),
                "workers": format_running(record, active.get(record.version, []), alive),
                "pinned_in": "; ".join(pinned.get(record.version, [])),
                "created_at": record.created_at,
                "created_by": record.created_by,
                "decision_rule": describe_head_rule(record.head),
                "expected": describe_expectation(record.head) or "",
                **_summary(record.head),
            }
            for record in store.heads.list(model)
        ]
        damaged = [reason for (model_id, _), reason in registry.damaged.items() if model_id == chosen.id]
        damaged = sorted({*damaged, *store.heads.list_damaged(model).values()})
    print_rows(rows, as_json=as_json, empty="No head yet: `lifelong calibrate`.", below="assumed_prevalence")
    if rows and not as_json:
        echo(f"The default head is {users}.")
    for reason in damaged:
        echo(f"Warning: {reason}.", err=True)


@heads.command()
@model_argument
@head_environment
@as_json
def history(model: str, environment: str | None, *, as_json: bool) -> None:
    """List the heads that were active in one place, newest first; --expected-sequence takes the number."""
    with open_store() as store:
        rows = [
            {
                "sequence": one.sequence,
                "version": one.head_version,
                "reason": one.reason,
                "follows_default": one.uses_default_head,
                "activated_at": one.activated_at,
                "activated_by": one.activated_by,
            }
            for one in reversed(store.heads.activations(model, environment=environment))
        ]
    print_rows(rows, as_json=as_json, empty="Nothing was ever active there (sequence 0).")


@heads.command()
@model_argument
@click.argument("version", type=int)
def show(model: str, version: int) -> None:
    """Print one head of MODEL as JSON, and its decision rule in words on the standard error."""
    from lifelong_core.store.heads.wording import describe_expectation, describe_head_rule

    with open_store() as store:
        head = store.heads.get(model, version).head
    echo(head.to_json())
    for line in (f"Decides by: {describe_head_rule(head)}.", describe_expectation(head)):
        if line is not None:
            echo(line, err=True)


@heads.command()
@model_argument
@click.argument("head", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@head_environment
@sequence_option
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
    from lifelong_core.deploy import PostProcessingHead

    with open_store() as store:
        record = store.heads.publish(
            model,
            PostProcessingHead.from_json(head.read_text(errors="replace")),
            environment=environment,
            actor=actor(),
            expected_sequence=expected_sequence,
            expected_digest=digest,
            force_reason=force_because,
        )
        calibration = store.calibration_sets.of_head(record)
        outlook = _outlook(store, record, environment)
    echo(f"Published head {record.version}.")
    if environment is None or calibration.is_at_risk:
        echo(calibration.sentence())
    echo(outlook)


@heads.command()
@model_argument
@head_environment
@sequence_option
@click.option(
    "--to",
    "to_version",
    type=click.IntRange(1, 2**31 - 1),
    metavar="VERSION",
    help="Version of the head to go back to; without it, the one that was active before the present one.",
)
@click.option(
    "--pin", "pin_reason", metavar="REASON", help="Also pin the restored head, so that no cycle replaces it."
)
def rollback(
    model: str,
    environment: str | None,
    expected_sequence: int | None,
    to_version: int | None,
    pin_reason: str | None,
) -> None:
    """Go back to an earlier head of MODEL; every worker serves it within a second.

    In mode auto a cycle may publish a head again within minutes, unless the head is pinned: --pin.

    The calibration set that a default head was fitted on becomes the active one of MODEL again, so
    that no cycle fits a head on a set that was withdrawn. In an environment the active set stays.

    \b
    Examples:
      lifelong heads rollback resnet
      lifelong heads rollback resnet --environment clinic-a --pin "wrong since the new scanner"
    """
    with open_store() as store:
        record = store.heads.rollback(
            model,
            environment=environment,
            actor=actor(),
            expected_sequence=expected_sequence,
            to_version=to_version,
            pin_reason=pin_reason,
        )
        calibration = store.calibration_sets.of_head(record)
        outlook = _outlook(store, record, environment)
    place = "as the default head" if environment is None else f"in {environment}"
    echo(f"Head {record.version} is active again {place}.")
    if environment is None or calibration.is_at_risk:
        echo(calibration.sentence())
    echo(outlook)


@heads.command()
@model_argument
@head_environment
@sequence_option
@click.option("--reason", required=True, help="Why the head is pinned; `lifelong heads list` shows it.")
def pin(model: str, environment: str | None, expected_sequence: int | None, reason: str) -> None:
    """Pin the active head: no cycle replaces it until it is unpinned. Operators still can."""
    with open_store() as store:
        store.heads.pin(
            model,
            environment=environment,
            reason=reason,
            actor=actor(),
            expected_sequence=expected_sequence,
        )
    echo(f"Pinned: cycles leave the {_head_in(environment)} alone.")


@heads.command()
@model_argument
@head_environment
@sequence_option
def unpin(model: str, environment: str | None, expected_sequence: int | None) -> None:
    """Let cycles replace the head again."""
    with open_store() as store:
        store.heads.unpin(model, environment=environment, actor=actor(), expected_sequence=expected_sequence)
    echo(f"Unpinned: cycles may replace the {_head_in(environment)} again.")


@heads.command()
@model_option()
@as_json
def proposals(model: str | None, *, as_json: bool) -> None:
    """List the heads that cycles propose and that wait for approval."""
    with open_store() as store:
        models = {item.id: item for item in store.models.list()}
        chosen = None if model is None else store.models.get(model).id
        found = [
            _proposal(cycle, cycle.proposal, store.heads.get(reference, cycle.head_version), reference)
            for cycle in store.cycles.proposals(chosen)
            if cycle.proposal is not None
            for reference in (models[cycle.model_id].reference,)
        ]
    if as_json:
        echo(json.dumps(found))
    elif not found:
        echo("Nothing is proposed.")
    else:
        echo("\n\n".join("\n".join(_lines(proposal)) for proposal in found))


@heads.command()
@click.argument("cycle")
def approve(cycle: str) -> None:
    """Publish the head that CYCLE proposed; every worker serves it within a second.

    CYCLE is the id of the cycle, or a unique beginning of it.
    """
    with open_store() as store:
        approved = store.cycles.approve(store.cycles.find(cycle).id, actor=actor())
    echo(f"Published head {approved.published_version} in {approved.environment}.")


@heads.command()
@click.argument("cycle")
@click.option("--reason", required=True, help="Why it is declined; at most 200 characters.")
def reject(cycle: str, reason: str) -> None:
    """Decline the head that CYCLE proposed (its id, or a unique beginning of it).

    While the present head stays active, no cycle proposes a head for practically the same prevalences again.
    """
    with open_store() as store:
        rejected = store.cycles.reject(store.cycles.find(cycle).id, reason=reason, actor=actor())
    echo(f"Rejected: head {rejected.head_version} stays active in {rejected.environment}.")


def _proposal(
    cycle: "Cycle", head: "PostProcessingHead", replaced: "HeadRecord", reference: str
) -> dict[str, Any]:
    """The head that a cycle proposes and what it would change, as JSON values."""
    from lifelong_core.decision_rules.wording import describe_rule

    return {
        "cycle": str(cycle.id),
        "model": reference,
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


def _outlook(store: "Store", record: "HeadRecord", environment: str | None) -> str:
    """What cycles may do to a head that has just come in force."""
    from lifelong_core.store.heads.outlook import describe_outlook

    model = store.registry().models[record.model_id]
    return describe_outlook(store, model, environment, at=datetime.now(UTC))


def _head_in(environment: str | None) -> str:
    return "default head" if environment is None else f"head in {environment}"


heads.add_command(workers)
