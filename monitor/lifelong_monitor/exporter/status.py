"""Status of one population for the exporter, as plain values."""

from dataclasses import dataclass
from datetime import datetime

from lifelong_core.configuration.policy_fields import Mode
from lifelong_core.deploy import AdaptationReport
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.performance import PopulationPerformance
from lifelong_core.entities.registry import ModelRole
from lifelong_core.store.cycles.swaps import AffectedFigures
from lifelong_core.values.arrays import Floats
from lifelong_monitor.cycle.reports import Inputs
from lifelong_monitor.realised.records import RealisedPerformance


@dataclass(frozen=True)
class ServingHead:
    """The head that serves a population now."""

    version: int
    activated_at: datetime
    assumed_prevalence: Floats
    """shape (C,)"""
    digest: str = ""
    rule_class: str = ""
    """class whose cut-off the decision rule searches; empty: it searches none, or for a metric of all classes"""


@dataclass(frozen=True)
class PopulationStatus:
    """A population after a tick."""

    model: str
    """reference, `name@version`"""
    environment: str
    task: str
    class_names: tuple[str, ...]
    role: ModelRole
    """of the model"""
    first_seen: datetime
    """when this process first found predictions of the population"""
    last_success: datetime | None = None
    head: ServingHead | None = None
    mode: Mode = "auto"
    """whether a cycle swaps, proposes or only reports another head"""
    pinned: bool = False
    """a person holds the head that serves"""
    proposed: bool = False
    """a head waits for a person's approval"""
    last_swap: datetime | None = None
    """when a cycle last published a head here; None: never"""
    cycle: Cycle | None = None
    """the newest recorded cycle, without the document of its report, which takes much memory"""
    report: AdaptationReport | None = None
    """of this cycle, without its context; None: it cannot be read"""
    inputs: Inputs | None = None
    """of this cycle; None: the report cannot be read"""
    affected: AffectedFigures | None = None
    """of the swap that brought the head that serves; None: no cycle did, or they are not counted yet"""
    realised: RealisedPerformance | None = None
    performance: PopulationPerformance | None = None
    """estimated beside realised performance; None: there is neither an estimate nor a label"""
