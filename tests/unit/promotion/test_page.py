"""The page of a promotion report: its numbers, its marks, and escaped text only."""

import json
import re
from typing import Any

import pytest

from lifelong_core.design.report.words import exact
from lifelong_core.promotion import PromotionReport
from lifelong_core.promotion.document import (
    LocalizationComparison,
    LocalizationExample,
    LocalizationScore,
)
from lifelong_core.promotion.page import promotion_html
from tests.unit.design.report.test_pages import HOSTILE, Tables
from tests.unit.promotion.reports import report

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PLACES = LocalizationComparison(
    images=3,
    grid=4,
    fill="mean",
    threshold=0.5,
    level=0.95,
    new_without_places=1,
    current_without_places=0,
    scores=(
        LocalizationScore(name="positive Jaccard", mean=0.61, low=0.4, high=0.8, defined=3, unrelated=0.2),
    ),
    examples=(
        LocalizationExample(
            name="a.png",
            class_index=1,
            true_class=2,
            current_overlay=PIXEL,
            new_overlay=PIXEL,
            scores={"positive Jaccard": 0.2},
        ),
    ),
)


@pytest.fixture(scope="module")
def made() -> PromotionReport:
    return report()


def hostile(made: PromotionReport) -> PromotionReport:
    """With names that would run code if they were not escaped."""
    names = tuple(f"{HOSTILE} {k}" for k in range(3))
    results: dict[str, Any] = {
        name: getattr(made, name).model_copy(update={"class_names": names, "name": HOSTILE})
        for name in ("new_result", "current_result")
    }
    cases = tuple(one.model_copy(update={"name": HOSTILE}) for one in made.changes.cases)
    subgroups = tuple(one.model_copy(update={"attribute": HOSTILE, "key": HOSTILE}) for one in made.subgroups)
    return made.model_copy(
        update={
            **results,
            "new": made.new.model_copy(update={"reference": HOSTILE, "trained_on": HOSTILE}),
            "task": HOSTILE,
            "origin": HOSTILE,
            "changes": made.changes.model_copy(update={"cases": cases}),
            "subgroups": subgroups,
            "localization": PLACES.model_copy(
                update={"examples": (PLACES.examples[0].model_copy(update={"name": HOSTILE}),)}
            ),
        }
    )


def test_equal_reports_give_equal_pages(made: PromotionReport) -> None:
    assert promotion_html(made) == promotion_html(PromotionReport.from_json(made.to_json()))


def test_tables_hold_the_numbers_of_the_report(made: PromotionReport) -> None:
    found = Tables(promotion_html(made)).rows
    for caption, values in (
        ("Values and differences", made.differences),
        ("Measures of the probabilities", made.calibration),
    ):
        rows = found[caption][1:]
        assert len(rows) == len(values)
        for row, one in zip(rows, values, strict=True):
            numbers = [exact(one.number(bound)) for bound in ("estimate", "low", "high")]
            assert row[0] == one.label
            assert row[3:8] == [exact(one.new), exact(one.current), *numbers]
    worse = found["Cases whose cost rises most"][1:]
    assert [row[0] for row in worse] == [one.name for one in made.changes.worse[:20]]
    assert [row[1:5] for row in found["By true class"][1:]] == [
        [str(one.samples), str(one.corrected), str(one.broken), str(one.other)]
        for one in made.changes.by_class
    ]


def test_every_reason_and_every_unknown_is_said(made: PromotionReport) -> None:
    text = re.sub(r"\s+", " ", promotion_html(made))
    assert made.verdict.headline in text
    for sentence in (*made.verdict.reasons, *made.verdict.unknown):
        assert sentence.replace("'", "&#39;").replace("<", "&lt;") in text
    assert "clinic-north" in text
    assert "85.3 MB" in text
    assert "12.30 ms" in text
    assert "0.083" in text


def test_what_may_be_chance_among_many_is_marked(made: PromotionReport) -> None:
    doubtful = made.differences[0].model_copy(update={"direction": "worse", "direction_among_all": "open"})
    page = promotion_html(made.model_copy(update={"differences": (doubtful, *made.differences[1:])}))
    assert "? perhaps worse" in page
    assert "perhaps worse" not in promotion_html(made)


def test_infinite_values_are_shown_as_such(made: PromotionReport) -> None:
    infinite = made.differences[0].model_copy(update={"new": None, "infinite_values": {"new": 1}})
    page = promotion_html(made.model_copy(update={"differences": (infinite,)}))
    rows = Tables(page).rows["Values and differences"][1:]
    assert rows[0][3] == "inf"
    assert "∞" in page


def test_the_page_embeds_the_report_without_its_images(made: PromotionReport) -> None:
    with_places = made.model_copy(update={"localization": PLACES})
    page = promotion_html(with_places)
    assert page.count(PIXEL) == 2
    found = re.search(r'<script type="application/json" id="document">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    document = PromotionReport.model_validate(json.loads(found[1]))
    bare = PLACES.model_copy(update={"examples": ()})
    assert document == made.model_copy(update={"localization": bare})
    assert "Do both look at the same places?" in page


def test_names_are_escaped(made: PromotionReport) -> None:
    page = promotion_html(hostile(made))
    assert "<script>window" not in page
    assert "<img src=x" not in page
    assert "49" not in re.findall(r"<h1>.*</h1>", page, re.DOTALL)[0]
