"""Sensitivity plots of uncertainty-aware scores."""

import re
from functools import cache

import numpy as np
import pytest

from lifelong_core.design import UncertaintySettings, ValidationResult, validate
from lifelong_core.design.report.pages import comparison_html, validation_html
from lifelong_core.design.report.uncertainty import (
    SERIES,
    change_rows,
    curve_text,
    score_rows,
    sensitivity_panels,
    uncertainty_source,
)
from lifelong_core.values.uncertainties import MOST_DAMPINGS
from tests.unit.design.report.results import three_models
from tests.unit.design.validations import recommending, simulated

LABELS, PROBABILITIES = simulated(60, 2)


@cache
def result(
    sigmas: tuple[float, ...] = (0.0, 0.1, 0.3), dampings: tuple[float, ...] = (0.0, 1.0, 4.0)
) -> ValidationResult:
    return validate(
        recommending("BA", number_of_classes=2),
        LABELS,
        probabilities=PROBABILITIES,
        uncertainties=np.random.default_rng(0).gamma(1, size=60),
        uncertainty_settings=UncertaintySettings(sigmas=sigmas, dampings=dampings),
        class_names=("benign", "<i>malignant</i>"),
        replicates=20,
    )


def test_each_score_has_a_plot_with_a_line_for_each_damping():
    scores = result().uncertainty_aware
    panels = sensitivity_panels(scores)
    assert [panel.title for panel in panels] == list(scores.metrics)
    for panel in panels:
        assert [line.kind for line in panel.lines] == list(SERIES[:3])
        assert [band.kind for band in panel.bands] == [SERIES[0], SERIES[2]]
        assert all(band.path.endswith("Z") for band in panel.bands)
        for damping in scores.dampings:
            assert curve_text(scores.curve(panel.title, damping), 2) in panel.description


def test_the_usual_score_is_marked_where_both_parameters_are_0():
    scores = result().uncertainty_aware
    (dot,) = sensitivity_panels(scores)[0].operating
    assert dot.x == sensitivity_panels(scores)[0].area[0]
    for changed in (result(sigmas=(0.1, 0.2)), result(dampings=(1.0, 2.0))):
        assert not sensitivity_panels(changed.uncertainty_aware)[0].operating


def test_a_line_goes_through_its_values():
    scores = result().uncertainty_aware
    panel = sensitivity_panels(scores)[4]
    places = [tuple(map(float, point.split())) for point in re.split("[ML]", panel.lines[1].path)[1:]]
    estimates = scores.curve("UA-F1", 1.0).estimates
    heights = [y for _, y in places]
    assert len(places) == 3
    rise = (heights[0] - heights[1]) / (heights[0] - heights[2])
    assert rise == pytest.approx((estimates[1] - estimates[0]) / (estimates[2] - estimates[0]), abs=0.05)


def test_a_single_sigma_is_drawn_as_dots():
    panel = sensitivity_panels(result(sigmas=(0.2,)).uncertainty_aware)[0]
    assert len(panel.dots) == 3
    low, high = panel.dots[0].low, panel.dots[0].high
    assert panel.area[1] <= high < panel.dots[0].y < low <= panel.area[3], "ends in pixels"


def test_what_is_not_defined_leaves_a_gap():
    scores = result().uncertainty_aware
    curve = scores.curves[0].model_copy(
        update={"estimates": (0.5, None, 0.7), "low": (0.4, None, None), "high": (0.6, None, None)}
    )
    broken = scores.model_copy(update={"curves": (curve, *scores.curves[1:])})
    panel = sensitivity_panels(broken)[0]
    assert panel.lines[0].path.count("M") == 2
    assert len(panel.dots) == 2
    assert curve_text(curve, 1) == "not defined"
    assert curve_text(curve, 2) == "0.700 (no interval)"


def test_there_is_a_style_for_every_damping():
    assert len(SERIES) == MOST_DAMPINGS


def test_changes_are_told_with_their_conclusion():
    scores = result().uncertainty_aware
    change = scores.changes[0].model_copy(update={"estimate": 0.05, "low": 0.01, "high": 0.125})
    (row,) = change_rows(scores.model_copy(update={"changes": (change,)}))
    assert (row.what, row.text) == ("d from 0 to 4, sigma = 0", "+0.050 (+0.010 to +0.125)")
    assert row.conclusion == "better: errors lie in samples with uncertain predictions"
    for update, text in (
        ({"low": None, "high": None}, "+0.050 (no interval)"),
        ({"estimate": None, "low": None, "high": None}, "not defined"),
    ):
        (row,) = change_rows(scores.model_copy(update={"changes": (change.model_copy(update=update),)}))
        assert (row.text, row.conclusion[:9]) == (text, "undecided")


def test_the_origin_of_the_uncertainties_is_told():
    scores = result().uncertainty_aware
    assert "of a kind that was not stated" in uncertainty_source(scores)
    assert "over 5 members" in uncertainty_source(scores.model_copy(update={"members": 5}))


def test_the_page_has_plots_tables_and_how_to_read_them():
    page = validation_html(result())
    section = page[page.index('<section id="uncertainty">') :]
    section = section[: section.index("</section>")]
    assert section.count('role="img"') == 5
    assert "How to read the plots" in section
    assert "&lt;i&gt;malignant" in section
    for row in score_rows(result().uncertainty_aware, "UA-recall"):
        assert all(text in section for text in row.values)
    assert 'href="#uncertainty"' in page


def test_a_page_without_uncertainties_says_nothing_of_them():
    without = result().model_copy(update={"uncertainty_aware": None})
    assert "Uncertainty-aware" not in validation_html(without)
    assert sensitivity_panels(None) == []


def test_a_comparison_shows_the_models_that_have_uncertainties():
    comparison = three_models()
    assert "Uncertainty-aware" not in comparison_html(comparison)
    one = comparison.results["noisy"].model_copy(update={"uncertainty_aware": result().uncertainty_aware})
    page = comparison_html(comparison.model_copy(update={"results": {**comparison.results, "noisy": one}}))
    section = page[page.index('<section id="uncertainty">') :]
    assert section[: section.index("</section>")].count("<h3") == 1
