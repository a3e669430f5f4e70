"""The knowledge base and the task map of 71 tasks in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lifelong_core.store import Scope
from tests.integration.browser import Browser, running_browser
from tests.integration.installation import install
from tests.integration.processes import running_service
from tests.unit.store.knowledge_samples import make_base

PAGE = "/console/knowledge/task_4_with_a_long_name/neighbours?scenario=pretraining&measure=BA"
DRAWN = """[...document.querySelectorAll('.map > svg')]
    .filter(one => getComputedStyle(one).display !== 'none')"""
OVERLAPS = f"""(() => {{
    const map = {DRAWN}[0].getBoundingClientRect(), found = [];
    const labels = [...{DRAWN}[0].querySelectorAll('text')].map(one => [one.textContent, one.getBoundingClientRect()]);
    labels.forEach(([name, box], number) => {{
        if (box.left < map.left || box.right > map.right || box.top < map.top || box.bottom > map.bottom)
            found.push(name + ' sticks out');
        labels.slice(0, number).forEach(([other, its]) => {{
            const width = Math.min(box.right, its.right) - Math.max(box.left, its.left);
            const height = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
            if (width > 1 && height > 1) found.push(name + ' covers ' + other);
        }});
    }});
    return found;
}})()"""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, str]]:
    """A logged-in browser, and the address of a service whose knowledge base holds 71 tasks and a ranker."""
    from lifelong_core.develop.ranking.fitting import fit_knowledge_ranker  # which imports scikit-learn

    folder: Path = tmp_path_factory.mktemp("knowledge")
    with install(folder).store() as store:
        _, secret = store.tokens.create("reader", [Scope.READ], actor="test")
        base = make_base(71)
        store.knowledge.import_base(base, actor="test")
        ranker = fit_knowledge_ranker(base)
        revision = store.knowledge.revision()
        store.rankers.put(
            ranker.to_bytes(), outcomes_digest=ranker.outcomes_digest, revision=revision, actor="test"
        )
    with running_service(folder, secret, workers=1) as service, running_browser() as browser:
        service.wait_until_ready()
        address = f"http://127.0.0.1:{service.port}"
        browser.open(f"{address}{PAGE}")
        browser.type(secret)
        with browser.navigation():
            browser.press("Enter")
        yield browser, address


def test_the_login_leads_back_to_the_scenario(console: tuple[Browser, str]) -> None:
    browser, address = console
    assert browser.evaluate("location.href") == f"{address}{PAGE}"
    assert browser.text("h1") == "What helps task_4_with_a_long_name?"
    assert browser.text(".tabs [aria-current]") == "Pretraining"
    assert "source tasks are expected to help" in browser.text(".lead")


@pytest.mark.parametrize(
    ("width", "media", "expected"), [(1200, "", "wide"), (360, "", "small"), (794, "print", "wide")]
)
def test_no_two_labels_of_the_map_overlap(
    console: tuple[Browser, str], width: int, media: str, expected: str
) -> None:
    browser, address = console
    browser.size(width, media=media)
    browser.open(f"{address}{PAGE}")
    assert browser.evaluate(f"{DRAWN}.map(one => one.className.baseVal)") == [expected]
    assert browser.evaluate(f"{DRAWN}[0].querySelectorAll('text').length") == 61
    assert browser.evaluate(OVERLAPS) == []
    assert browser.evaluate(f"{DRAWN}[0].querySelectorAll('path.target').length") == 1
    browser.size(1200)


def test_a_mark_of_the_map_leads_to_its_evidence(console: tuple[Browser, str]) -> None:
    browser, address = console
    browser.size(1200)
    browser.open(f"{address}{PAGE}")
    for number in (1, 30):  # of the first page and of another one
        with browser.navigation():
            found = browser.evaluate(
                f"""(() => {{
                    const one = [...{DRAWN}[0].querySelectorAll('a')]
                        .find(a => a.querySelector('title').textContent.startsWith('{number}. '));
                    one.dispatchEvent(new MouseEvent('click', {{bubbles: true, cancelable: true}}));
                    return one.querySelector('title').textContent;
                }})()"""
            )
            if number == 1:  # it stays on the page, which is not left
                browser.evaluate("window.isLeft = false")
        row = browser.text("tr:target")
        assert row.split()[0] == str(number)
        assert row.split()[1] == found.split()[1].rstrip(":")
    assert browser.evaluate("[...document.querySelectorAll('.map a')].every(one => one.tabIndex === -1)")


def test_the_pages_fit_a_telephone_and_need_nothing_from_elsewhere(console: tuple[Browser, str]) -> None:
    browser, address = console
    browser.size(360)
    for path in ("/console/knowledge", "/console/knowledge/task_4_with_a_long_name", PAGE):
        browser.open(f"{address}{path}")
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.evaluate(width) <= 0, path
    browser.size(1200)
    assert browser.complaints() == []
    for event in browser.events:
        if event["method"] == "Network.requestWillBeSent":
            assert event["params"]["request"]["url"].startswith((f"{address}/console", "data:"))
