"""Positions in a plot."""

import math
import re

from hypothesis import strategies as st

from lifelong_core.design.report.figures import (
    precision_recall_panels,
    rates,
    reliability_panels,
    roc_panels,
    share_interval,
)
from lifelong_core.design.report.forest import Entry, entries_of, forest, forests
from lifelong_core.design.report.words import number
from lifelong_core.design.validation.result import SubgroupMetric
from lifelong_core.design.validation.validate import validate
from tests.unit.design.interviews import ALL_ALIKE
from tests.unit.design.report.results import advised, logits, ten_classes, two_classes

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


def test_the_operating_point_is_that_of_the_decisions() -> None:
    result = ten_classes()
    found, alarms, precise = rates(result, 3)
    labels, values = logits("cifar10_resnet50", "deployment")
    decided, is_cat = values.argmax(axis=1) == 3, labels == 3
    assert found == (decided & is_cat).sum() / is_cat.sum()
    assert alarms == (decided & ~is_cat).sum() / (~is_cat).sum()
    assert precise == (decided & is_cat).sum() / decided.sum()
    for panels in (roc_panels(result), precision_recall_panels(result)):
        assert number(found) in panels[3].operating[0].title


def test_of_two_classes_mirror_images_are_left_out() -> None:
    result = two_classes()
    assert [panel.title for panel in roc_panels(result)] == ["dyed resection margin"]
    assert [panel.title for panel in reliability_panels(result)] == [
        "likeliest class",
        "dyed resection margin",
    ]
    assert len(precision_recall_panels(result)) == 2


def test_a_curve_begins_and_ends_in_the_corners() -> None:
    panel = roc_panels(two_classes())[0]
    left, top, right, bottom = panel.area
    numbers = [float(one) for one in re.findall(r"[\d.]+", panel.lines[-1].path)]
    assert numbers[:2] == [left, bottom]
    assert numbers[-2:] == [right, top]


def test_the_cut_off_of_a_target_lies_on_the_curve() -> None:
    target = {"decision_rule": "target_value", "target_class": 1, "target_metric": "TPR", "target_value": 0.9}
    labels, values = logits("hyperkvasir_therapeutic_interventions", "development_test")
    result = validate(advised(ALL_ALIKE | target, 2), labels, logits=values, replicates=10)
    cut_off = next(value.cut_off for value in result.values if value.cut_off is not None)
    assert cut_off.threshold is not None
    dots = [dot for panel in roc_panels(result) for dot in panel.cut_offs]
    assert dots
    assert f"cut-off {number(cut_off.threshold)} of" in dots[0].title


def test_bins_are_drawn_with_their_counts() -> None:
    result = two_classes()
    shown = [bins for bins in result.reliability if bins.class_index in (None, 1)]
    for bins, panel in zip(shown, reliability_panels(result), strict=True):
        filled = [count for count in bins.counts if count]
        assert len(panel.dots) == len(panel.bars) == len(filled)
        heights = [bar.height for bar in panel.bars]
        assert max(heights) == heights[filled.index(max(filled))]


def test_an_interval_of_a_share_holds_it() -> None:
    for share, count in ((0.0, 5), (1.0, 5), (0.3, 10)):
        low, high = share_interval(share, count, 0.95)
        assert 0 <= low <= share <= high <= 1
        assert not math.isclose(low, high)


def test_values_between_0_and_1_share_an_axis() -> None:
    result = two_classes()
    plots = forests(entries_of(result.values, result.class_names, result.acceptance))
    assert [plot.title for plot in plots] == ["Lower is better", "Higher is better"]
    assert sum(len(plot.rows) for plot in plots) == len(result.values)
    far = result.values[0].model_copy(update={"estimate": 7.0, "high": 8.0})
    plots = forests(entries_of([far, *result.values[1:]], result.class_names))
    assert plots[-1].title == f"{far.label}: lower is better"


def test_a_threshold_stands_in_the_row_that_it_is_for() -> None:
    result = two_classes()
    entries = entries_of(result.values, result.class_names, result.acceptance)
    assert {entry.label: entry.threshold for entry in entries if entry.threshold is not None} == {
        "EC": 0.01,
        "NB@0.1 · dyed resection margin": 0.4,
    }


def value_of(estimate: float, low: float, high: float) -> SubgroupMetric:
    return SubgroupMetric(
        label="AC", value_of="all_classes", estimate=estimate, low=low, high=high, reason=None, method="bca",
        replicates=9,
    )  # fmt: skip


def test_a_rough_interval_ends_in_an_arrow_and_does_not_stretch_the_axis() -> None:
    whole, small = value_of(0.9, 0.88, 0.92), value_of(0.91, 0.1, 1.0)
    for is_rough in (False, True):
        entries = [Entry("all", whole, "up"), Entry("small", small, "up", is_rough=is_rough)]
        plot = forest(entries, "AC", reference=0.9)
        first, second = plot.rows
        assert first.dot is not None
        assert second.dot is not None
        assert plot.reference == first.dot.x
        assert first.arrows == ()
        assert len(second.arrows) == (2 if is_rough else 0)
        if is_rough:
            assert (second.dot.low, second.dot.high) == plot.plot
            assert first.dot.low is not None
            assert first.dot.low > plot.plot[0]
