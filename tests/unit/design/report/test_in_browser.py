"""A report in a browser: nothing loaded, nothing run, readable on paper, on a phone and in dark mode."""

import base64
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lifelong_core.design import ValidationResult, validate
from lifelong_core.design.report.pages import comparison_html, validation_html
from lifelong_core.develop.localization.classifier_stability import ClassifierStability, classifier_stability
from lifelong_core.promotion.page import promotion_html, stability_html
from tests.integration.browser import Browser, running_browser
from tests.unit.design.report.results import (
    hundred_classes,
    patients,
    ten_classes,
    three_models,
    two_classes,
)
from tests.unit.design.report.test_pages import HOSTILE, hostile
from tests.unit.design.report.test_uncertainty import result as uncertain_result
from tests.unit.design.validations import recommending, simulated
from tests.unit.promotion.reports import report
from tests.unit.promotion.test_page import hostile as hostile_promotion

PAPER = 703
"""width of A4 less its margins, in pixels"""
PHONE = 375
MOST_PAGES = 9


def few_metrics() -> ValidationResult:
    """Subgroups with so few metrics that their table is printed whole."""
    labels, probabilities = simulated(80, 2)
    return validate(
        recommending("AC", number_of_classes=2),
        labels,
        probabilities=probabilities,
        metadata={"site": np.arange(80) % 4 // 2},
        replicates=20,
    )


def stability() -> ClassifierStability:
    """Four classifiers with names that make their table wide."""
    rng = np.random.default_rng(0)
    maps = {f"classifier of seed {seed}": rng.random((3, 4, 4)) for seed in range(4)}
    names = [f"patient_{image}_of_the_first_site.png" for image in range(3)]
    return classifier_stability(maps, None, names=names, threshold=0.5, level=0.95)


def long_names() -> str:
    """As long as names may be, and in one word."""
    result = ten_classes()
    names = tuple(f"{k}{'x' * 199}" for k in range(len(result.class_names)))
    return validation_html(result.model_copy(update={"name": "m" * 200, "class_names": names}))


PAGES: dict[str, Any] = {
    "two": lambda: validation_html(two_classes()),
    "groups": lambda: validation_html(patients()),
    "few_metrics": lambda: validation_html(few_metrics()),
    "uncertainty": lambda: validation_html(uncertain_result()),
    "ten": lambda: validation_html(ten_classes()),
    "hundred": lambda: validation_html(hundred_classes()),
    "models": lambda: comparison_html(three_models()),
    "hostile": lambda: validation_html(hostile()),
    "long_names": long_names,
    "promotion": lambda: promotion_html(report()),
    "stability": lambda: stability_html(stability()),
    "hostile_promotion": lambda: promotion_html(hostile_promotion(report())),
}

UNNAMED = """[...document.querySelectorAll('svg')].filter(drawing => !drawing.parentElement.closest('svg')
    && drawing.getAttribute('aria-hidden') !== 'true'
    && !(drawing.getAttribute('role') === 'img' && drawing.getAttribute('aria-label'))).length"""
UNSCOPED = "document.querySelectorAll('th:not([scope])').length"
REPEATED = """(() => { const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
    return ids.length - new Set(ids).size })()"""
BROKEN_LINKS = """[...document.querySelectorAll('[href]')].map(one => one.getAttribute('href'))
    .filter(link => !link.startsWith('#') || !document.getElementById(link.slice(1)))"""
LEVELS = "[...document.querySelectorAll('h1, h2, h3, h4')].map(one => Number(one.tagName[1]))"
INVISIBLE = """[...document.querySelectorAll('details:not(.long) > :not(summary)')]
    .filter(one => !one.checkVisibility({contentVisibilityAuto: true})).length"""
BRIGHTNESS = """(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g);
    return (Number(r) + Number(g) + Number(b)) / 3 })()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every page as a file."""
    made = tmp_path_factory.mktemp("reports")
    for name, page in PAGES.items():
        (made / f"{name}.html").write_text(page(), encoding="utf-8")
    return made


def look_at(browser: Browser, folder: Path, name: str, width: int = 1200, **taste: str) -> None:
    browser.events.clear()
    browser.size(width, **taste)
    browser.open((folder / f"{name}.html").as_uri())


def is_inline(event: dict[str, Any]) -> bool:
    """Whether what is asked for is part of the page."""
    return event["params"]["request"]["url"].startswith("data:")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_nothing_else_and_is_accessible(browser: Browser, folder: Path, name: str) -> None:
    look_at(browser, folder, name)
    asked = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event["method"] == "Network.requestWillBeSent" and not is_inline(event)
    ]
    assert asked == [(folder / f"{name}.html").as_uri()]
    assert browser.complaints() == []
    assert browser.evaluate(BROKEN_LINKS) == []
    assert browser.evaluate("document.documentElement.lang") == "en"
    assert browser.evaluate(UNNAMED) == browser.evaluate(UNSCOPED) == browser.evaluate(REPEATED) == 0
    levels = browser.evaluate(LEVELS)
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_hostile_names_do_nothing(browser: Browser, folder: Path) -> None:
    look_at(browser, folder, "hostile")
    assert browser.evaluate("window.isHit") is None
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert HOSTILE in browser.evaluate("document.querySelector('h1').textContent")
    assert browser.evaluate("JSON.parse(document.getElementById('document').textContent).name") == HOSTILE


def pages_of(paper: bytes) -> int:
    """The number of pages of a PDF of Chromium, which leaves the page tree uncompressed."""
    return len(re.findall(rb"/Type\s*/Page\b", paper))


@pytest.mark.parametrize("name", ["two", "groups", "uncertainty", "ten", "hundred", "models"])
def test_it_prints_on_fewer_than_ten_pages(browser: Browser, folder: Path, name: str) -> None:
    look_at(browser, folder, name, PAPER, media="print")
    paper = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert paper.startswith(b"%PDF")
    assert 1 < pages_of(paper) <= MOST_PAGES


@pytest.mark.parametrize("name", ["two", "hundred", "models", "long_names", "promotion"])
def test_it_prints_with_everything_unfolded(browser: Browser, folder: Path, name: str) -> None:
    look_at(browser, folder, name, PAPER, media="print", scheme="dark")
    assert browser.evaluate(INVISIBLE) == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= PAPER
    assert browser.evaluate(BRIGHTNESS) == 255


def test_a_page_cuts_no_figure_and_names_what_is_not_printed(browser: Browser, folder: Path) -> None:
    look_at(browser, folder, "two", PAPER, media="print")
    rules = browser.evaluate(
        "[...document.querySelectorAll('figure')].map(one => getComputedStyle(one).breakInside)"
    )
    assert rules
    assert set(rules) == {"avoid"}
    cut = browser.evaluate(
        """[...document.querySelectorAll('tr, .forest, .panels > *')]
        .filter(one => getComputedStyle(one).breakInside !== 'avoid').length"""
    )
    assert cut == 0
    said = "getComputedStyle(document.querySelector('details.long > summary'), '::after').content"
    assert "not printed" in browser.evaluate(said)


def test_an_interval_is_never_broken_into_lines(browser: Browser, folder: Path) -> None:
    for media, width in (("print", PAPER), ("", PHONE), ("", 1200)):
        look_at(browser, folder, "groups", width, media=media)
        heights = browser.evaluate(
            """[...document.querySelectorAll('.forest .value, .interval')].filter(one => one.innerText.trim()
            && one.checkVisibility()).map(one => one.offsetHeight / parseFloat(getComputedStyle(one).lineHeight))"""
        )
        assert heights
        assert max(heights) < 1.5


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_pages_and_their_forest_plots_whole(browser: Browser, folder: Path, name: str) -> None:
    look_at(browser, folder, name, PHONE)
    assert browser.evaluate("document.documentElement.scrollWidth") <= PHONE
    if name not in ("two", "groups", "uncertainty", "ten", "models", "promotion"):
        return
    beyond = browser.evaluate(
        f"""[...document.querySelectorAll('.forest .row > *, .forest .dot, .forest text, .stack td, .stack th, .mark')]
        .map(one => one.getBoundingClientRect()).filter(box => box.width && (box.left < 0 || box.right > {PHONE}))
        .length"""
    )
    assert beyond == 0
    tracks = browser.evaluate(
        "[...document.querySelectorAll('.forest .track')].map(one => one.getBoundingClientRect().width)"
    )
    assert tracks
    assert min(tracks) > 0.85 * PHONE


@pytest.mark.parametrize("name", ["models", "stability"])
def test_captions_and_columns_are_seen_whole_on_a_phone(browser: Browser, folder: Path, name: str) -> None:
    look_at(browser, folder, name, PHONE)
    boxes = browser.evaluate(
        """[...document.querySelectorAll('table:not(details table) :is(caption, th, td)')]
        .map(one => one.getBoundingClientRect()).filter(box => box.width).map(box => [box.left, box.right])"""
    )
    assert boxes
    assert min(left for left, _ in boxes) >= 0
    assert max(right for _, right in boxes) <= PHONE


@pytest.mark.parametrize(
    ("name", "width", "media", "has_values"),
    [
        ("groups", PHONE, "", False),
        ("groups", PAPER, "print", False),
        ("groups", 1200, "", True),
        ("few_metrics", PAPER, "print", True),
    ],
)
def test_the_title_of_the_subgroup_table_is_of_what_it_shows(
    browser: Browser, folder: Path, name: str, width: int, media: str, has_values: bool
) -> None:
    look_at(browser, folder, name, width, media=media)
    title = browser.evaluate("document.querySelector('#subgroups caption').innerText")
    cells = browser.evaluate(
        "[...document.querySelectorAll('#subgroups td[data-value]')].filter(one => one.checkVisibility()).length"
    )
    assert (cells > 0) is has_values
    assert ("Metrics by subgroup" in title) is has_values
    assert ("metrics of a class" in title) is (has_values and name == "groups")
    assert ("Samples and cases of the subgroups" in title) is not has_values


def test_the_screen_is_dark_where_that_is_wanted_and_folds_long_tables(
    browser: Browser, folder: Path
) -> None:
    look_at(browser, folder, "two", scheme="dark")
    assert browser.evaluate(BRIGHTNESS) < 50
    look_at(browser, folder, "two")
    assert browser.evaluate(BRIGHTNESS) == 255
    assert browser.evaluate(INVISIBLE) > 0
