"""The report that a cycle recorded, and beside it what a replay needs and the report itself does not hold."""

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from lifelong_core.deploy import AdaptationReport
from lifelong_core.errors import InvalidInputError
from lifelong_core.store.records import Cycle

_INPUTS = "inputs"
"""Key of the inputs within the stored report."""


@dataclass(frozen=True)
class Base:
    """Up to where the evidence of a population has consumed the log, and the cycle whose report holds it."""

    cycle: UUID
    horizon: int


@dataclass(frozen=True)
class Inputs:
    """What a cycle was given beside its window, the head and the policy."""

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

    def to_document(self) -> dict[str, Any]:
        """The inputs as JSON values."""
        base = None if self.base is None else {"cycle": str(self.base.cycle), "horizon": self.base.horizon}
        return {**asdict(self), "base": base}


def document_of(report: AdaptationReport, inputs: Inputs) -> dict[str, Any]:
    """What a cycle stores; `report_of` and `inputs_of` read it."""
    return {**report.to_document(), _INPUTS: inputs.to_document()}


def report_of(cycle: Cycle) -> AdaptationReport:
    """The report that a cycle recorded, by this version of the product or an older one.

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
    """The inputs that a cycle recorded; the first version of the product wrote only two of them."""
    document = cycle.report[_INPUTS]
    base = document.get("base")
    return Inputs(
        **{**document, "base": None if base is None else Base(UUID(base["cycle"]), base["horizon"])}
    )
