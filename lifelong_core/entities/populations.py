"""Populations as overviews show them: the figures of their cycles, what a person has to do, and how they moved."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from uuid import UUID

import numpy as np

from lifelong_core.deploy.performance.acceptance import Acceptance
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.deploy.shift.size import shift_size
from lifelong_core.entities.affected import AffectedFiguresAnswer
from lifelong_core.entities.cycles import Outcome
from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.entities.performance import Metric

Need: TypeAlias = Literal["decide", "look", "none"]
"""`decide`: a person has to decide; `look`: a person should look at it; `none`: nothing to do"""
NEEDS: tuple[Need, ...] = ("decide", "look", "none")


@dataclass(frozen=True, kw_only=True)
class CycleFigures(Entity):
    """The numbers of a cycle's report that overviews show; null: the cycle ended before it computed them."""

    shift: Metric | None = None
    """L1 distance (0 to 2) between the estimated prevalence and the one that the head assumes; its bounds follow
    from the intervals of the single classes"""
    expected_cost: float | None = None
    """of a decision of the head that served: that of the gain, else the estimate of the performance"""
    best_expected_cost: float | None = None
    """of a decision of a head for the estimated prevalence"""
    accuracy: Metric | None = None
    """of the head that served, estimated without labels"""
    reasons: tuple[str, ...] = ()
    """codes"""


@dataclass(frozen=True, kw_only=True)
class PopulationSummary(Entity):
    """One population in the overview: what it needs, its head, and the figures of its newest cycle."""

    model: str
    """name@version"""
    environment: str
    task: str
    need: Need
    state: str
    """what it needs, and why, as a sentence"""
    mode: str
    """auto, propose or shadow: the strictest one of the settings and the living monitors"""
    head_version: int | None
    """of the head in force; null: there is none"""
    head_since: Moment | None
    """of the last swap, publication or roll-back there"""
    pinned: bool
    cycle: UUID | None
    """the newest cycle; null: none has run"""
    judged_at: Moment | None
    effect: str | None
    """of the newest cycle: keep, swap, refuse, would swap, proposes a swap"""
    shift: Metric | None
    """L1 distance (0 to 2) of the estimated prevalence from the assumed one; its bounds follow from the intervals of
    the single classes: with many classes the lower one may exceed 0 without a shift"""
    recent_shifts: list[float]
    """the same of the newest cycles, oldest first"""
    expected_cost: float | None
    """of a decision now; in the units of the task's costs"""
    best_expected_cost: float | None
    """of a decision with a head for the estimated prevalence"""
    accuracy: Metric | None
    """estimated without labels"""
    required_accuracy: float | None
    """the strictest acceptance threshold; null: there is none"""
    acceptance: Acceptance | None
    """the estimated accuracy beside that threshold; null: one of them is missing"""
    head_proposal: UUID | None
    """the cycle whose proposed head can be approved now"""
    retraining_proposals: int
    """open ones"""


@dataclass(frozen=True, kw_only=True)
class JudgedWindow(Entity):
    """What a cycle saw and what followed, for charts over time."""

    cycle: UUID
    judged_at: Moment
    outcome: Outcome
    effect: str
    samples: int
    head_version: int
    published_version: int | None
    assumed_prevalence: list[float]
    """by class, of the head that served"""
    prevalence: list[list[float]] | None
    """estimate, lower and upper bound by class; null: there is no estimate"""
    changed_at: Moment | None
    """of the last change of the prevalence in the window; null: there is none"""
    reason: str
    """the first one, as a sentence"""


@dataclass(frozen=True, kw_only=True)
class PublishedSwap(Entity):
    """A head that a cycle published, and the earlier decisions that it changes."""

    cycle: UUID
    at: Moment
    """when the head came into force: for a proposal, when a person approved it"""
    head_version: int
    affected: AffectedFiguresAnswer | None
    """null: not counted"""


@dataclass(frozen=True, kw_only=True)
class PopulationAnswer(Entity):
    """A population: its present state and what its cycles saw."""

    summary: PopulationSummary
    class_names: list[str]
    head: str | None
    """the head in force in words, and where it comes from; null: there is none"""
    head_made_at: Moment | None
    head_cycle: UUID | None
    """that fitted it; null: a person published it"""
    windows: list[JudgedWindow]
    """of the newest cycles, oldest first"""
    swaps: list[PublishedSwap]
    """among these cycles, oldest first"""


def figures_of(report: Mapping[str, Any]) -> CycleFigures:
    """The figures of the report of a cycle; parts that it lacks stay null."""
    gain: Mapping[str, Any] = report.get("expected_gain") or {}
    performance: Mapping[str, Any] = report.get("performance") or {}
    estimates: Mapping[str, Any] = performance.get("estimates") or {}
    accuracy, cost = estimates.get("AC"), estimates.get("EC") or [None]
    return CycleFigures(
        shift=_shift(report.get("prevalence"), report.get("assumed_prevalence")),
        expected_cost=gain.get("current_cost", cost[0]),
        best_expected_cost=gain.get("candidate_cost"),
        accuracy=None if accuracy is None else EstimatedMetric.from_numbers(accuracy),
        reasons=tuple(reason["code"] for reason in report.get("reasons") or ()),
    )


def _shift(estimate: Mapping[str, Any] | None, assumed: list[float] | None) -> EstimatedMetric | None:
    if estimate is None or assumed is None:
        return None
    parts = (np.asarray(estimate[part]) for part in ("prevalence", "low", "high"))
    return EstimatedMetric(*shift_size(np.asarray(assumed), *parts))
