"""A comparison of estimated and realised performance: six days, a swap, a disagreement and a drift."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from lifelong_core.deploy.performance.labelled.agreement import Agreement
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.entities.performance import (
    ClassMix,
    ComparedPeriod,
    Estimated,
    HeadSwap,
    LabelCheck,
    MetricAtClassMix,
    PopulationPerformance,
    Realised,
)

FIRST = datetime(2026, 3, 4, tzinfo=UTC)
DAY = timedelta(days=1)


def interval(value: float, half: float) -> EstimatedMetric:
    return EstimatedMetric(value, value - half, value + half)


def agreement(name: str, p_value: float) -> Agreement:
    verdict = "agree" if p_value >= 0.05 else "disagree"
    return Agreement(verdict, -0.05, -1.0, p_value, 0.05, f"{name}: they {verdict}.")


def day(index: int, head: int, estimated: float, realised: float, *, agrees: bool = True) -> ComparedPeriod:
    """A day with an estimate and 60 labels."""
    since = FIRST + index * DAY
    warnings = ("a limit of the estimate",) if head == 2 else ()
    return ComparedPeriod(
        since=since,
        until=since + DAY,
        head_version=head,
        estimated=Estimated(
            UUID(int=index + 1),
            since + DAY,
            "TS",
            500,
            {"AC": interval(estimated, 0.03 if head == 1 else 0.02), "EC": interval(1 - estimated, 0.05)},
            warnings,
        ),
        realised=Realised(60, {"AC": interval(realised, 0.1), "EC": interval(1 - realised, 0.2)}),
        agreement={
            "AC": agreement("accuracy", 0.6 if agrees else 0.003),
            "EC": agreement("expected cost", 0.5),
        },
    )


def at_class_mix(mix: ClassMix, share: float, cost: float, *, accepted: bool | None) -> MetricAtClassMix:
    """The expected cost where this share is malignant; at most 0.2 is acceptable."""
    shares = {"benign": 1 - share, "malignant": share}
    return MetricAtClassMix("EC", mix, shares, 360, interval(cost, 0.02), 0.2, accepted)


def comparison() -> PopulationPerformance:
    days = (
        day(0, 1, 0.85, 0.80),
        day(1, 1, 0.84, 0.85),
        day(2, 1, 0.80, 0.78),
        day(3, 2, 0.88, 0.86),
        day(4, 2, 0.89, 0.83),
        day(5, 2, 0.90, 0.75, agrees=False),
    )
    return PopulationPerformance(
        computed_at=FIRST + 6 * DAY,
        confidence=0.95,
        inputs="0" * 64,
        heads=(days[2], days[-1]),
        days=days,
        swaps=(HeadSwap(FIRST + 3 * DAY, 2),),
        calibration_drift=LabelCheck(
            0.0004,
            0.01,
            rejected=True,
            samples=360,
            text="The answered probabilities are not calibrated: too sure.",
        ),
        selection=LabelCheck(0.4, 0.01, rejected=False, samples=360, text="No difference is seen."),
        class_mixes=(
            at_class_mix("stated", 0.02, 0.093, accepted=True),
            at_class_mix("estimated", 0.35, 1.5, accepted=None),
            at_class_mix("realised", 0.4, 1.76, accepted=False),
        ),
    )
