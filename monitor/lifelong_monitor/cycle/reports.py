"""The report of a recorded cycle, and further inputs that a replay needs."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from lifelong_core.deploy import AdaptationReport
from lifelong_core.entities.cycles import Cycle
from lifelong_core.values.errors import InvalidInputError
from lifelong_monitor.cycle.estimates import WantedEstimate

_INPUTS = "inputs"
"""Key of the inputs within the stored report."""


@dataclass(frozen=True)
class Base:
    """The log position up to which the evidence of a population counts, and the cycle whose report holds the
    evidence."""

    cycle: UUID
    log_position: int


@dataclass(frozen=True)
class Hours:
    """The key of a window of summaries of whole hours, by which a replay makes the window again."""

    since: datetime
    until: datetime
    is_grouped: bool
    """whether the summaries knew which samples belong together"""
    counts_digest: str
    """SHA-256 (hex) over the number of samples in each cell"""
    moments: tuple[float, ...]
    """moments of the summary"""

    def to_document(self) -> dict[str, Any]:
        """The hours as JSON values."""
        times = {"since": self.since.isoformat(), "until": self.until.isoformat()}
        return {**asdict(self), **times, "moments": list(self.moments)}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """Read what `to_document` wrote."""
        times = {name: datetime.fromisoformat(document[name]) for name in ("since", "until")}
        return cls(**{**document, **times, "moments": tuple(document["moments"])})


@dataclass(frozen=True)
class Inputs:
    """The inputs of a cycle beside its window, the head and the policy."""

    calibration_set: int
    quantifier: str
    base: Base | None = None
    """None: the window itself was the first that the sequential test saw"""
    limit: int = 0
    """largest number of new samples that were read"""
    new_samples: int = 0
    """how many there were"""
    new_digest: str = ""
    """SHA-256 (hex) over their ids"""
    quarantined: int = 0
    """predictions in the window that cannot be judged, and were left out"""
    hours: Hours | None = None
    """None: the window was made of rows"""
    wanted: tuple[WantedEstimate, ...] = ()
    """metrics that were estimated without labels, with their thresholds"""
    missed_cycles: int = 0
    """cycles in a row, up to this one, in which the judged head misses the target of its decision rule"""
    clocks: tuple[str, ...] = ()
    """sentences on clocks that differed during the cycle"""
    head_changes: int = 0
    """how many heads had served the population one after the other"""

    def to_document(self) -> dict[str, Any]:
        """The inputs as JSON values."""
        base = (
            None
            if self.base is None
            else {"cycle": str(self.base.cycle), "log_position": self.base.log_position}
        )
        hours = None if self.hours is None else self.hours.to_document()
        wanted = [estimate.to_document() for estimate in self.wanted]
        return {**asdict(self), "base": base, "hours": hours, "wanted": wanted, "clocks": list(self.clocks)}


def document_of(report: AdaptationReport, inputs: Inputs) -> dict[str, Any]:
    """The document that a cycle stores; `report_of` and `inputs_of` read it."""
    return {**report.to_document(), _INPUTS: inputs.to_document()}


def report_of(cycle: Cycle) -> AdaptationReport:
    """The report that a cycle recorded.

    Raises:
        InvalidInputError: it was written in a form that this version cannot read.
    """
    return AdaptationReport.from_document(
        {key: value for key, value in cycle.report.items() if key != _INPUTS}
    )


def readable_report_of(cycle: Cycle) -> AdaptationReport | None:
    """`report_of`; None where it cannot be read, so that an old row never stops the watch over new ones."""
    try:
        return report_of(cycle)
    except InvalidInputError:
        return None


def inputs_of(cycle: Cycle) -> Inputs:
    """The inputs that a cycle recorded."""
    document = cycle.report[_INPUTS]
    base, hours = document["base"], document["hours"]
    parts = {
        "base": None if base is None else Base(UUID(base["cycle"]), base["log_position"]),
        "hours": None if hours is None else Hours.from_document(hours),
        "wanted": tuple(map(WantedEstimate.from_document, document["wanted"])),
        "clocks": tuple(document["clocks"]),
    }
    return Inputs(**{**document, **parts})


def count_missed_cycles(report: AdaptationReport, last: Cycle | None) -> int:
    """Cycles in a row, up to that of this report, that expect the target of the decision rule to be missed.

    A cycle that expects nothing, for instance without a judgeable window, leaves the number of the `last` one. Another
    head than that of the last cycle starts anew.
    """
    is_same_head = last is not None and last.report.get("head_digest") == report.head_digest
    before = (last.report.get(_INPUTS) or {}).get("missed_cycles", 0) if last and is_same_head else 0
    if report.criterion is None:
        return before if report.prevalence is None else 0
    return before + 1 if report.criterion.is_missed else 0
