"""The changes of the head that served a population: inputs, evidence, approver and effect of each."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.head_wording import describe_head
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.entities.change_control import ClassShare, HeadChange
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.heads import Activation, HeadRecord
from lifelong_core.entities.registry import Model
from lifelong_core.operations.cycles import affected_figures
from lifelong_core.store import Store
from lifelong_core.store.cycles.cycles import MONITOR
from lifelong_core.store.cycles.periods import Period


def changes_of(store: Store, model: Model, period: Period, class_names: Sequence[str]) -> list[HeadChange]:
    """The changes of the head that served the population."""
    history = _served(
        store.heads.activations(model.reference),
        store.heads.activations(model.reference, environment=period.environment),
    )
    pairs = [
        (before, one)
        for before, one in zip([None, *history], history, strict=False)
        if period.since <= one.activated_at < period.until
    ]
    heads = undamaged_heads(
        store, model, {one.head_version for pair in pairs for one in pair if one is not None}
    )
    swapped = [one.head_version for _, one in pairs if one.reason == "swap"]
    cycles = store.population_periods.publishing(model.id, period.environment, swapped)
    affected = store.swaps.figures([cycle.id for cycle in cycles.values()])
    changes: list[HeadChange] = []
    for before, one in pairs:
        head = heads.get(one.head_version)
        cycle = cycles.get(one.head_version) if one.reason == "swap" else None
        figures = None if cycle is None else affected.get(cycle.id)
        replaced = None if before is None else heads.get(before.head_version)
        changes.append(
            HeadChange(
                **_head_fields(one, head),
                decision=_decision(one, cycle),
                cycle=None if cycle is None else cycle.id,
                samples=None if cycle is None else cycle.window_samples,
                shares=_shares(replaced, head, cycle, class_names),
                reasons=[] if cycle is None else reasons_of(cycle),
                verification=[] if cycle is None else _verification(cycle.report),
                affected=None if figures is None else affected_figures(figures),
            )
        )
    return changes


def undamaged_heads(store: Store, model: Model, versions: Collection[int]) -> dict[int, HeadRecord]:
    """The undamaged ones of these heads, by version."""
    found = store.heads.some(model.reference, versions)
    return {version: head for version, head in found.items() if isinstance(head, HeadRecord)}


def _served(default: Sequence[Activation], own: Sequence[Activation]) -> list[Activation]:
    """The activations that changed what an environment used, in order of time.

    Args:
        default: of the model's default head, which serves while the environment has none of its own.
        own: of the environment; one that `uses_default_head` returned it to the default head.
    """
    changes: list[Activation] = []
    follows_default = True
    for one in sorted((*default, *own), key=lambda one: (one.activated_at, one.sequence)):
        if one.environment is not None:
            follows_default = one.uses_default_head
        elif not follows_default:
            continue
        changes.append(one)
    return changes


def _head_fields(activation: Activation, record: HeadRecord | None) -> dict[str, Any]:
    return {
        "at": activation.activated_at,
        "reason": activation.reason,
        "is_default_head": activation.environment is None or activation.uses_default_head,
        "head_version": activation.head_version,
        "digest": "" if record is None else record.digest,
        "head": "it is damaged" if record is None else f"it {describe_head(record.head)}",
        "by": activation.activated_by,
    }


def _decision(activation: Activation, cycle: Cycle | None) -> Literal["automatic", "approved", "by a person"]:
    if cycle is None:
        return "by a person"
    return "automatic" if cycle.proposal is None or activation.activated_by == MONITOR else "approved"


def _shares(
    before: HeadRecord | None, after: HeadRecord | None, cycle: Cycle | None, class_names: Sequence[str]
) -> list[ClassShare]:
    if before is None or after is None:
        return []
    estimate: Mapping[str, Any] | None = None if cycle is None else cycle.report.get("prevalence")
    old, new = _assumed(before.head), _assumed(after.head)
    return [
        ClassShare(
            name=name,
            assumed=old[place],
            estimated=None
            if estimate is None
            else EstimatedMetric(*(estimate[part][place] for part in ("prevalence", "low", "high"))),
            new=new[place],
        )
        for place, name in enumerate(class_names)
    ]


def _assumed(head: PostProcessingHead) -> list[float]:
    return np.asarray(head.assumed_prevalence, dtype=np.float64).tolist()


def reasons_of(cycle: Cycle) -> list[str]:
    """The reasons of a cycle as sentences."""
    return [reason["text"] for reason in cycle.report.get("reasons") or ()]


def _verification(report: Mapping[str, Any]) -> list[str]:
    """What a cycle tested and compared before its swap."""
    sentences: list[str] = []
    if assumption := report.get("assumption_test"):
        verdict = "rejected" if assumption["rejected"] else "not rejected"
        sentences.append(
            f'Test of "only the prevalence has changed": {verdict} (p = {assumption["p_value"]:.2g}, level'
            f" {assumption['level']:g})."
        )
    for name, title in (
        ("expected_gain", "Drop of the expected cost of a decision"),
        ("expected_probability_gain", "Drop of the expected log loss of the probabilities"),
    ):
        if gain := report.get(name):
            sentences.append(f"{title}: {gain['value']:.4f} ({gain['low']:.4f} to {gain['high']:.4f}).")
    if (worst := report.get("worst_case_cost_increase")) is not None:
        sentences.append(
            f"Largest possible increase of the cost of a decision on this window, whatever has changed: {worst:.4f}."
        )
    return sentences
