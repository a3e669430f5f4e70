"""Status of one population for the exporter, as plain values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lifelong_core.configuration.policy_defaults import Mode
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion
from lifelong_core.deploy.performance.acceptance import Acceptance
from lifelong_core.store.cycles.affected_counts import AffectedFigures
from lifelong_core.store.cycles.records import Outcome
from lifelong_core.store.performance.records import PopulationPerformance
from lifelong_core.store.registry.records import ModelRole
from lifelong_core.values.arrays import Floats


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
class EvidenceFigures:
    """How strongly all samples since the head came in force speak against what it assumes."""

    log_e_value: float
    """natural logarithm; each sample counts once"""
    alarm: float
    """the logarithm from which on it counts as a shift"""
    samples: int


@dataclass(frozen=True)
class AssumptionFigures:
    """The test of "nothing but the prevalence has changed"."""

    p_value: float
    level: float
    """below it the cycle refuses, or reports"""


@dataclass(frozen=True)
class GainFigures:
    """Gain per decision of a refitted head, with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class EstimatedFigure:
    """A metric that a cycle estimated without labels."""

    metric: str
    """label, as that of `RealisedMetric`"""
    class_index: int | None
    """None: of all classes"""
    value: float
    low: float
    high: float
    threshold: float | None = None
    """the strictest acceptance threshold; None: there is none"""
    acceptance: Acceptance | None = None
    """None: there is no threshold, or the estimate is undefined"""


@dataclass(frozen=True)
class PerformanceFigures:
    """The performance of a head in the window of a cycle, estimated without labels."""

    head_digest: str
    method: str
    metrics: tuple[EstimatedFigure, ...]
    validated_error: float | None
    """of the accuracy; None: it was not simulated"""
    warnings: tuple[str, ...]
    """their codes"""


@dataclass(frozen=True)
class CycleFigures:
    """Figures of the newest cycle of a population; the arrays are None when it made no estimate."""

    outcome: Outcome
    window_samples: int
    prevalence: Floats | None = None
    """shape (C,), as are `low` and `high`, the bounds of its interval"""
    low: Floats | None = None
    high: Floats | None = None
    shift_l1: float | None = None
    """L1 distance in 0..2 between the estimate and what the judged head assumed"""
    changed_at: datetime | None = None
    """when the prevalence last changed within the window; None: no change was found there"""
    evidence: EvidenceFigures | None = None
    """None also when another head serves by now than the one that the cycle judged"""
    assumption: AssumptionFigures | None = None
    gain: GainFigures | None = None
    """in expected cost, in the units of the task's cost matrix"""
    probability_gain: GainFigures | None = None
    """in expected log loss, in nats"""
    worst_case_cost_increase: float | None = None
    """largest increase of the cost per decision that a swap could cause"""
    quarantined: int = 0
    """predictions that were left out of the window because they cannot be judged"""
    performance: PerformanceFigures | None = None
    """of the judged head"""
    candidate_performance: PerformanceFigures | None = None
    criteria: Mapping[str, ExpectedCriterion] = field(default_factory=dict[str, ExpectedCriterion])
    """by digest of the judged head and of the swapped-in one: what its decision rule will reach; empty for rules that
    minimise a cost"""
    missed_cycles: int = 0
    """cycles in a row, up to this one, that expected the judged head to miss the target of its rule"""


@dataclass(frozen=True)
class RealisedMetric:
    """One value of a metric that the recommendation of the task names; nan where it is undefined."""

    label: str
    """with its parameters, F_beta (beta=2.0)"""
    class_index: int | None
    """None: of all classes"""
    estimate: float
    low: float
    """lower end of its interval"""
    high: float
    threshold: float | None = None
    """the strictest acceptance threshold; None: there is none"""
    accepted: bool | None = None
    """True: the estimate reaches the thresholds; False: not even the better end of its interval does; None: there is no
    threshold, or there are too few labels to tell"""
    reason: str | None = None
    """why the estimate is undefined"""


@dataclass(frozen=True)
class LeftOutMetric:
    """A recommended metric that is not computed here, or not defined, and why."""

    label: str
    reason: str


@dataclass(frozen=True)
class LeftOutPredictions:
    """Labelled predictions that do not count, or not in all metrics."""

    samples: int
    reason: str
    """why not, and in which; to be read after the number"""


@dataclass(frozen=True)
class RecommendedMetrics:
    """Recommended metrics of a task for one population."""

    values: tuple[RealisedMetric, ...] = ()
    left_out: tuple[LeftOutMetric, ...] = ()
    unscored: tuple[LeftOutPredictions, ...] = ()
    """those that the metrics of probabilities do without, because these are not known"""


@dataclass(frozen=True)
class RealisedPerformance:
    """How good the answers were, as they were given, on predictions whose true class has become known."""

    samples: int
    accuracy: float
    """share of correct decisions in 0..1"""
    expected_cost: float
    """mean cost per decision, in the units of the task's cost matrix"""
    recommended: RecommendedMetrics = RecommendedMetrics()
    left_out: tuple[LeftOutPredictions, ...] = ()
    accuracy_interval: tuple[float, float] = (math.nan, math.nan)
    expected_cost_interval: tuple[float, float] = (math.nan, math.nan)
    """lower and upper bounds; nan: undefined"""


@dataclass(frozen=True)
class PopulationStatus:
    """A population after a tick."""

    model: str
    """reference, `name@version`"""
    environment: str
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
    cycle: CycleFigures | None = None
    affected: AffectedFigures | None = None
    """of the swap that brought the head that serves; None: no cycle did, or they are not counted yet"""
    realised: RealisedPerformance | None = None
    performance: PopulationPerformance | None = None
    """estimated beside realised performance; None: there is neither an estimate nor a label"""
