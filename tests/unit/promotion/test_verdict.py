"""The verdict: benefits have to be shown beyond the chance of all differences, harms only suspected."""

from dataclasses import replace
from typing import Any

import pytest

from lifelong_core.design.validation.acceptance import AcceptanceOutcome, AcceptanceThreshold
from lifelong_core.design.validation.differences import Direction, MetricDifference, SubgroupDifference
from lifelong_core.promotion.decision_changes import McNemar
from lifelong_core.promotion.document import CostDifference
from lifelong_core.promotion.evidence import Evidence
from lifelong_core.promotion.verdict import verdict
from tests.unit.promotion.reports import report

RESULT = report(replicates=10).new_result


def difference(alone: Direction = "open", among_all: Direction = "open", **more: Any) -> MetricDifference:
    given = {
        "metric": "EC",
        "label": "EC",
        "value_of": "all_classes",
        "estimate": -0.2,
        "low": -0.3,
        "high": -0.1,
        "reason": None,
        "method": "bca",
        "replicates": 100,
        "orientation": "down",
        "new": 0.4,
        "current": 0.6,
        "direction": alone,
        "direction_among_all": among_all,
    }
    return MetricDifference.model_validate(given | more)


def of_class(alone: Direction, among_all: Direction) -> tuple[MetricDifference, ...]:
    """The mean of a metric, and its value of class 2."""
    mean = difference(label="TPR", metric="TPR", value_of="mean")
    return mean, difference(alone, among_all, label="TPR", metric="TPR", value_of="one_class", class_index=2)


def of_subgroup(alone: Direction, among_all: Direction) -> tuple[SubgroupDifference, ...]:
    place = {"attribute": "scanner", "key": "B", "samples": 80}
    return (SubgroupDifference.model_validate({**difference(alone, among_all).model_dump(), **place}),)


def of_environment(alone: Direction, among_all: Direction) -> tuple[CostDifference, ...]:
    return (
        CostDifference(
            environment="clinic", prevalence=(0.8, 0.1, 0.1), difference=difference(alone, among_all)
        ),
    )


def evidence(**more: Any) -> Evidence:
    bare = RESULT.model_copy(update={"acceptance": ()})
    nothing = Evidence(
        new=bare,
        current=bare,
        cost=difference(),
        differences=(),
        subgroups=(),
        environments=(),
        mcnemar=McNemar(corrected=3, broken=2, exact=1.0, mid_p=0.8, groups=None),
    )
    return replace(nothing, **more)


def accepted(passed: bool | None) -> Any:
    outcome = AcceptanceOutcome(
        threshold=AcceptanceThreshold(metric="EC", value=0.5), value=0.4, passed=passed, why="The estimate."
    )
    return RESULT.model_copy(update={"acceptance": (outcome,)})


BETTER: dict[str, Any] = {"cost": difference("better", "better")}


@pytest.mark.parametrize(
    ("given", "advice", "headline"),
    [
        (BETTER, "promote", "it is better"),
        (BETTER | {"new": accepted(True)}, "promote", "it is better"),
        (BETTER | {"new": accepted(False)}, "reject", "misses its thresholds"),
        (BETTER | {"new": accepted(None)}, "decide", "cannot be judged"),
        ({"cost": difference("better", "open")}, "decide", "no difference beyond chance"),
        ({"cost": difference("worse", "worse")}, "reject", "it is worse"),
        (
            {"cost": difference("worse", "worse"), "favours_current": True},
            "decide",
            "favour the current model",
        ),
        (BETTER | {"favours_current": True}, "promote", "it is better"),
        ({"cost": difference("worse", "open")}, "decide", "may be worse"),
        (BETTER | {"differences": of_class("worse", "open")}, "promote", "it is better"),
        (BETTER | {"differences": of_class("worse", "worse")}, "decide", "worse in another"),
        ({"differences": of_class("better", "better")}, "decide", "for a part of the cases only"),
        ({"environments": of_environment("better", "better")}, "decide", "for a part of the cases only"),
        (BETTER | {"subgroups": of_subgroup("worse", "open")}, "promote", "it is better"),
        (BETTER | {"subgroups": of_subgroup("worse", "worse")}, "decide", "worse in another"),
        (BETTER | {"environments": of_environment("worse", "open")}, "decide", "worse in another"),
        ({"environments": of_environment("worse", "worse")}, "reject", "it is worse"),
    ],
)
def test_what_it_advises(given: dict[str, Any], advice: str, headline: str) -> None:
    found = verdict(evidence(**given), ())
    assert found.advice == advice
    assert headline in found.headline


def test_reasons_name_what_differs_and_say_where_it_may_be_chance() -> None:
    made = evidence(
        cost=difference("worse", "open"),
        differences=of_class("worse", "worse"),
        subgroups=of_subgroup("better", "better"),
        environments=of_environment("better", "better"),
    )
    text = " ".join(verdict(made, ()).reasons)
    assert (
        "EC is worse: -0.2, with an interval from -0.3 to -0.1. Of so many differences, this may be" in text
    )
    assert "TPR of malignant is worse" in text
    assert "Of the 1 differences of subgroups, 1 is better." in text
    assert "EC in clinic is better" in text
    assert text.count("may be chance") == 1
    assert "McNemar's exact test of equally many errors: p = 1.000 (mid-p = 0.800)." in text


def test_an_infinite_end_of_an_interval_is_written_as_such() -> None:
    cost = difference(
        "better", "better", orientation="up", estimate=9.0, low=2.5, high=None, infinite={"high": 1}
    )
    assert "from +2.5 to +∞" in " ".join(verdict(evidence(cost=cost), ()).reasons)
