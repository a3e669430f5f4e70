"""The comparison of estimated and realised performance of one population, as a value and as a JSON document."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from lifelong_core.deploy.performance.labelled.agreement import Agreement
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.store.performance.figures import MetricAtClassMix, RealisedRuleMetric
from lifelong_core.values.errors import InvalidInputError

METRICS = ("AC", "EC")
"""Metrics that are compared: accuracy and expected cost."""


@dataclass(frozen=True)
class Estimated:
    """The estimate without labels of one cycle, or the mean of several with the facts of the last one."""

    cycle: UUID
    made_at: datetime
    method: str
    samples: int
    """predictions in its window"""
    metrics: Mapping[str, EstimatedMetric]
    """by acronym"""
    warnings: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        return {
            "cycle": str(self.cycle),
            "made_at": self.made_at.isoformat(),
            "method": self.method,
            "samples": self.samples,
            "metrics": _metrics_document(self.metrics),
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote."""
        return cls(
            cycle=UUID(document["cycle"]),
            made_at=_moment(document["made_at"]),
            method=document["method"],
            samples=document["samples"],
            metrics=_metrics_of(document["metrics"]),
            warnings=tuple(document["warnings"]),
        )


@dataclass(frozen=True)
class Realised:
    """The performance of decisions as they were answered, on labelled predictions."""

    samples: int
    """labelled predictions"""
    metrics: Mapping[str, EstimatedMetric]
    """by acronym; weighted by labelling propensity where that is known"""

    def to_document(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {"samples": self.samples, "metrics": _metrics_document(self.metrics)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote."""
        return cls(samples=document["samples"], metrics=_metrics_of(document["metrics"]))


@dataclass(frozen=True)
class ComparedPeriod:
    """Estimated and realised performance of one head version in one period."""

    since: datetime
    until: datetime
    """exclusive"""
    head_version: int
    estimated: Estimated | None
    """None: no cycle of the period estimated the performance of this head"""
    realised: Realised | None
    """of the predictions of the head in the period; None: none of them has a label"""
    agreement: Mapping[str, Agreement]
    """by acronym; empty where one side is missing"""

    @property
    def agrees(self) -> bool | None:
        """Whether all metrics agree; None: there are too few labels for each of them."""
        verdicts = {one.verdict for one in self.agreement.values()} - {"too_few_labels"}
        return verdicts == {"agree"} if verdicts else None

    def to_document(self) -> dict[str, Any]:
        """The period as JSON values."""
        return {
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "head_version": self.head_version,
            "estimated": None if self.estimated is None else self.estimated.to_document(),
            "realised": None if self.realised is None else self.realised.to_document(),
            "agreement": {name: one.to_document() for name, one in self.agreement.items()},
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote."""
        estimated, realised = document["estimated"], document["realised"]
        return cls(
            since=_moment(document["since"]),
            until=_moment(document["until"]),
            head_version=document["head_version"],
            estimated=None if estimated is None else Estimated.from_document(estimated),
            realised=None if realised is None else Realised.from_document(realised),
            agreement={name: Agreement.from_document(one) for name, one in document["agreement"].items()},
        )


@dataclass(frozen=True)
class LabelCheck:
    """A test on labelled predictions: calibration of the answered probabilities, or selection of labelled samples."""

    p_value: float
    level: float
    rejected: bool
    samples: int
    """labelled predictions behind it"""
    text: str

    def to_document(self) -> dict[str, Any]:
        """The check as JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class HeadSwap:
    """Start of the service of a head."""

    at: datetime
    head_version: int

    def to_document(self) -> dict[str, Any]:
        """The swap as JSON values."""
        return {"at": self.at.isoformat(), "head_version": self.head_version}


@dataclass(frozen=True)
class PopulationPerformance:
    """Estimated and realised performance of a population, with checks of its labelled predictions."""

    computed_at: datetime
    confidence: float
    """nominal coverage of the intervals"""
    inputs: str
    """digest of the state of labels, cycles and settings that it was computed from"""
    heads: tuple[ComparedPeriod, ...]
    """by head version, over all of its days, in order of their last day: the mean of the estimates of the days with
    labels, weighted by their number of labels, beside the labelled predictions of the days with an estimate"""
    days: tuple[ComparedPeriod, ...]
    """by UTC day and head version, oldest first"""
    swaps: tuple[HeadSwap, ...]
    """within these days, oldest first"""
    calibration_drift: LabelCheck | None
    """whether the answered probabilities are calibrated on labelled predictions; None: too few labels"""
    selection: LabelCheck | None
    """whether the logits of labelled and unlabelled predictions of the newest window differ; None: too few of one"""
    left_out: tuple[str, ...] = ()
    """reasons why a part is missing, as sentences"""
    class_mixes: tuple[MetricAtClassMix, ...] = ()
    """recommended metrics at stated prevalences, each also at the estimated and the realised ones; empty: none has
    stated prevalences, or there is no label"""
    rule_metric: RealisedRuleMetric | None = None
    """of the head of the newest labelled prediction; None: its rule has no searched cut-off, or too few labels"""

    @property
    def newest(self) -> ComparedPeriod | None:
        """The head version with the newest estimate; None: there is no estimate."""
        estimated = [head for head in self.heads if head.estimated is not None]
        return estimated[-1] if estimated else None

    def to_document(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        drift, selection = self.calibration_drift, self.selection
        return {
            "schema_version": 1,
            "computed_at": self.computed_at.isoformat(),
            "confidence": self.confidence,
            "inputs": self.inputs,
            "heads": [head.to_document() for head in self.heads],
            "days": [day.to_document() for day in self.days],
            "swaps": [swap.to_document() for swap in self.swaps],
            "calibration_drift": None if drift is None else drift.to_document(),
            "selection": None if selection is None else selection.to_document(),
            "left_out": list(self.left_out),
            "class_mixes": [one.to_document() for one in self.class_mixes],
            "rule_metric": None if self.rule_metric is None else self.rule_metric.to_document(),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: the document has another form.
        """
        if document.get("schema_version") != 1:
            raise InvalidInputError("expected 1.", field="schema_version")
        try:
            return cls(
                computed_at=_moment(document["computed_at"]),
                confidence=document["confidence"],
                inputs=document["inputs"],
                heads=tuple(ComparedPeriod.from_document(head) for head in document["heads"]),
                days=tuple(ComparedPeriod.from_document(day) for day in document["days"]),
                swaps=tuple(HeadSwap(_moment(one["at"]), one["head_version"]) for one in document["swaps"]),
                calibration_drift=_check_of(document["calibration_drift"]),
                selection=_check_of(document["selection"]),
                left_out=tuple(document["left_out"]),
                # Older comparisons lack these.
                class_mixes=tuple(map(MetricAtClassMix.from_document, document.get("class_mixes", ()))),
                rule_metric=_rule_metric_of(document.get("rule_metric")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError("a value has another form than expected.", field="document") from error


def _rule_metric_of(document: Mapping[str, Any] | None) -> RealisedRuleMetric | None:
    return None if document is None else RealisedRuleMetric.from_document(document)


def _check_of(document: Mapping[str, Any] | None) -> LabelCheck | None:
    return None if document is None else LabelCheck(**document)


def _metrics_document(metrics: Mapping[str, EstimatedMetric]) -> dict[str, list[float | None]]:
    return {name: metric.to_numbers() for name, metric in metrics.items()}


def _metrics_of(document: Mapping[str, Any]) -> dict[str, EstimatedMetric]:
    return {name: EstimatedMetric.from_numbers(three) for name, three in document.items()}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
