"""What the change-control dossier and the periodic report of a population hold."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from lifelong_core.entities.access import AuditEntry
from lifelong_core.entities.affected import AffectedFiguresAnswer
from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.entities.performance import Metric
from lifelong_core.entities.populations import JudgedWindow


@dataclass(frozen=True, kw_only=True)
class PolicyRule(Entity):
    """A field of an adaptation policy."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class PolicyPeriod(Entity):
    """Cycles in a row under one policy."""

    since: Moment
    """end of the first of these cycles"""
    until: Moment
    """end of the last one"""
    cycles: int
    rules: list[PolicyRule]


@dataclass(frozen=True, kw_only=True)
class ClassShare(Entity):
    """The share of a class before and after a change of the head."""

    name: str
    assumed: float
    """by the head before"""
    estimated: Metric | None
    """by the cycle, without labels, with its interval; null: there is no estimate"""
    new: float
    """assumed by the new head"""


@dataclass(frozen=True, kw_only=True)
class HeadChange(Entity):
    """A change of the head of a population, with its inputs, its evidence, the approver and its effect."""

    at: Moment
    reason: Literal["publish", "rollback", "swap"]
    is_default_head: bool
    """whether it changed the model's default head, which served the environment"""
    head_version: int
    digest: str
    """of the head; empty: it is damaged"""
    head: str
    """what it assumes and how it decides, in words"""
    by: str
    decision: Literal["automatic", "approved", "by a person"]
    cycle: UUID | None
    """that fitted the head; null: a person published it or rolled back"""
    samples: int | None
    """predictions in the window of the cycle"""
    shares: list[ClassShare]
    reasons: list[str]
    verification: list[str]
    """what the cycle tested and compared, as sentences"""
    affected: AffectedFiguresAnswer | None
    """earlier decisions that the new head would make otherwise; null: not counted"""


@dataclass(frozen=True, kw_only=True)
class DeclinedChange(Entity):
    """A cycle that changed nothing although the prevalence seemed to have shifted."""

    at: Moment
    cycle: UUID
    kind: Literal["refused", "proposed", "rejected", "shadow"]
    reasons: list[str]
    by: str | None
    """the person who rejected the proposal"""


@dataclass(frozen=True, kw_only=True)
class AuditProof(Entity):
    """The entries of the audit log about the population, and whether the log is as it was written."""

    entries: list[AuditEntry]
    """of the period, oldest first; at most the newest 10,000"""
    has_more: bool
    """whether older entries of the period are left out"""
    newest: int
    """number of the newest entry of the whole log before the end of the period; 0: there is none"""
    digest: str
    """its digest, which covers all entries before it"""
    verified_from: int | None
    """number of the first entry whose digest was computed again; null: a service reads only newer entries"""
    faults: list[str]
    """breaks of the chain, as sentences; empty: none"""


@dataclass(frozen=True, kw_only=True)
class PopulationPeriod(Entity):
    """A population and a period: what dossier and report begin with."""

    model: str
    """name@version"""
    environment: str
    task: str
    class_names: list[str]
    since: Moment
    until: Moment
    """exclusive"""
    cycles: dict[str, int]
    """number of cycles by effect"""
    changes: list[HeadChange]
    """oldest first"""
    audit: AuditProof


@dataclass(frozen=True, kw_only=True)
class Dossier(PopulationPeriod):
    """The change-control dossier: what may change by itself, within which limits, and every change that was made."""

    policies: list[PolicyPeriod]
    """that cycles of the period followed, oldest first"""
    declined: list[DeclinedChange]
    more_declined: int
    """earlier ones, which are left out"""


@dataclass(frozen=True, kw_only=True)
class ServedDay(Entity):
    """The predictions of a UTC day."""

    day: Moment
    decisions: list[int]
    """number of decisions by class; the last number is of abstentions where the head can abstain"""


@dataclass(frozen=True, kw_only=True)
class EstimatedDay(Entity):
    """Performance estimated without labels by the last cycle of a UTC day for a head."""

    day: Moment
    head_version: int
    metrics: dict[str, Metric]
    """by acronym"""


@dataclass(frozen=True, kw_only=True)
class RealisedHead(Entity):
    """Performance on the labelled predictions of a head in the period, as they were answered."""

    head_version: int
    samples: int
    metrics: dict[str, Metric]
    """by acronym, with 95 % intervals"""


@dataclass(frozen=True, kw_only=True)
class PeriodReport(PopulationPeriod):
    """The periodic report for the quality manager."""

    served: list[ServedDay]
    windows: list[JudgedWindow]
    """of the last cycle of each day, oldest first"""
    estimated: list[EstimatedDay]
    realised: list[RealisedHead]
