"""The console in a real browser: a screening problem from the login to its metrics, with the keyboard alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Scope, Store
from tests.integration.browser import ARRIVED, Browser, running_browser
from tests.integration.installation import install
from tests.integration.processes import Service, running_service

OTHER_HOST = "wiki.test"
HOST = "console.test"
"""A name without HTTPS, as in a clinic's network: browsers then do not say Sec-Fetch-Site."""
ANSWERS: dict[str, int | str | list[str]] = {
    "class_scores_available": 0,
    "decision_rule": 3,
    "unequal_severity": 0,
    "costs_available": 0,
    "threshold_perspective": 0,
    "target_class": 1,
    "risk_threshold": "0.02",
    "threshold_range": 0,
    "prevalences_representative": 0,
    "costs": ["1", "49"],
    "predictive_values": 0,
    "calibration_assessment": 0,
    "calibration_comparison": 0,
    "output_interpretation": 1,
    "unequal_interest": 1,
    "dependent_cases": 0,
    "grouping_variable": "woman",
    "invalid_outputs": 0,
}
"""Mammography screening: which of the answers to pick, what to type, or what to type in one input after another."""
METRICS = ["EC", "NB@0.02", "AP", "ECE_KDE", "CWCE", "RBS"]
MOST_KEYS = 150
"""A person presses two in a second, so that the way takes less than two minutes, reading aside."""


class Keyboard:
    """Presses keys, and counts them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.keys = 0

    def press(self, key: str, times: int = 1) -> None:
        for _ in range(times):
            self._browser.press(key)
        self.keys += times

    def type(self, text: str) -> None:
        self._browser.type(text)
        self.keys += len(text)

    def submit(self) -> None:
        with self._browser.navigation():
            self.press("Enter")

    def answer(self, answer: int | str | list[str]) -> None:
        """Fill in the inputs of a page, of which the first that is empty has the focus."""
        if isinstance(answer, int):
            self.press("Space")
            self.press("ArrowDown", answer)
        elif isinstance(answer, str):
            self.type(answer)
        else:
            for index, text in enumerate(answer):
                self.press("Tab", min(index, 1))
                self.type(text)
        self.submit()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a task of two classes, and the token of somebody who may answer."""
    folder = tmp_path_factory.mktemp("console")
    installation = install(folder)
    with installation.store() as store:
        store.tasks.add("mammography", ["no cancer", "cancer"], [[0, 1], [9, 0]], actor="test")
        _, secret = store.tokens.create("reader", [Scope.OPERATE], actor="test")
    return folder, secret


@pytest.fixture(scope="module")
def service(installed: tuple[Path, str]) -> Iterator[Service]:
    with running_service(installed[0], installed[1], workers=1) as started:
        started.wait_until_ready()
        yield started


@pytest.fixture
def browser() -> Iterator[Browser]:
    rules = f"MAP {HOST} 127.0.0.1, MAP {OTHER_HOST} 127.0.0.1"
    with running_browser(f"--host-resolver-rules={rules}") as started:
        yield started


def test_a_screening_problem_reaches_its_metrics_with_the_keyboard_alone(
    service: Service, installed: tuple[Path, str], browser: Browser
) -> None:
    keyboard = Keyboard(browser)
    browser.size(1200)
    browser.open(f"http://{HOST}:{service.port}/console/start")
    browser.type(installed[1])  # it is pasted
    keyboard.submit()
    assert browser.evaluate("document.cookie") == ""
    keyboard.press("ArrowDown", 2)
    assert browser.evaluate("document.activeElement.value") == "mammography"
    keyboard.press("Tab", 2)
    keyboard.submit()

    asked: list[str] = []
    while field := browser.evaluate("document.querySelector('input[name=field]')?.value"):
        assert field not in asked, browser.text("#error")
        asked.append(field)
        has_reader_what_is_needed(browser)
        keyboard.answer(ANSWERS[field])
    assert sorted(asked) == sorted(ANSWERS)
    assert browser.evaluate("location.pathname").endswith("/result")
    labels = browser.evaluate("[...document.querySelectorAll('.labels strong')].map(one => one.innerText)")
    assert labels == METRICS
    assert browser.text(".reasons").startswith("Why")
    assert keyboard.keys <= MOST_KEYS
    fits_a_telephone(browser)
    assert browser.complaints() == []
    requests = [event["params"] for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    assert len(requests) > len(asked)
    for one in requests:
        assert one["request"]["url"].startswith((f"http://{HOST}:{service.port}/console", "data:"))
        assert installed[1] not in one["request"]["url"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_of_the_navigation_has_a_barrier(
    service: Service, installed: tuple[Path, str], browser: Browser, scheme: str
) -> None:
    log_in(service, installed, browser)
    browser.size(1280, scheme=scheme)
    pages: list[str] = browser.evaluate("[...document.querySelectorAll('.masthead a')].map(one => one.href)")
    assert len(pages) > 5
    found = {address: barriers(browser, address) for address in pages}
    assert {address: texts for address, texts in found.items() if texts} == {}


def barriers(browser: Browser, address: str) -> list[str]:
    browser.open(address)
    return browser.barriers()


def test_a_barrier_is_found(browser: Browser) -> None:
    browser.open("data:text/html,<html lang=en><title>a</title><main><h1>b</h1><p style='color:%23bbb'>faint")
    assert [text.partition(":")[0] for text in browser.barriers()] == ["color-contrast"]


def has_reader_what_is_needed(browser: Browser) -> None:
    """The focus is seen and in the form, every input has a name, and nothing sticks out on a telephone."""
    focused: dict[str, Any] = browser.evaluate(
        """(() => {
            const input = document.activeElement, box = input.closest('label') ?? input;
            return {form: input.form?.action ?? '', outline: parseFloat(getComputedStyle(box).outlineWidth)
                * (getComputedStyle(box).outlineStyle !== 'none')};
        })()"""
    )
    assert focused["form"].endswith("/answers")
    assert focused["outline"] >= 2
    unnamed = browser.evaluate(
        """[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
            .filter(one => !one.labels?.length && !one.ariaLabel).length"""
    )
    assert unnamed == 0
    assert browser.evaluate("document.querySelectorAll('progress').length") == 1
    narrow = """[...document.querySelectorAll('summary')]
        .filter(one => one.offsetHeight > 3 * parseFloat(getComputedStyle(one).lineHeight))
        .map(one => one.innerText)"""
    assert browser.evaluate(narrow) == []
    fits_a_telephone(browser)


def fits_a_telephone(browser: Browser) -> None:
    browser.size(360)
    sticking_out = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.evaluate(sticking_out) <= 0, browser.evaluate("location.pathname")
    browser.size(1200)


def test_an_error_has_the_focus_and_is_read_out(
    service: Service, installed: tuple[Path, str], browser: Browser
) -> None:
    keyboard = Keyboard(browser)
    browser.open(f"http://{HOST}:{service.port}/console/login")
    keyboard.type("wrong")
    keyboard.submit()
    message = (
        "document.getElementById(document.activeElement.getAttribute('aria-describedby').split(' ').pop())"
    )
    assert "unknown, expired or revoked" in browser.evaluate(f"{message}.innerText")
    keyboard.type(installed[1])
    keyboard.submit()
    with service.connect() as connection:
        made = connection.post_json("/v1/admin/interviews", {"answers": {"number_of_classes": 2}}).body
    browser.open(f"http://{HOST}:{service.port}/console/interviews/{made['id']}?item=risk_threshold")
    keyboard.type("2")
    keyboard.submit()
    assert "below 1" in browser.evaluate(f"{message}.innerText")
    assert browser.evaluate("document.activeElement.value") == "2"
    keyboard.press("Delete")
    keyboard.type("2 %")
    keyboard.submit()
    assert "Risk threshold\n0.02" in browser.text("aside .answers")


def test_the_browsers_way_back_leads_to_the_question_before(
    service: Service, installed: tuple[Path, str], browser: Browser
) -> None:
    keyboard = log_in(service, installed, browser, class_names=["no cancer", "cancer"])
    keyboard.answer(0)
    keyboard.answer(2)
    assert browser.text("h1") == "Are some mix-ups worse than others?"
    browser.evaluate("history.back()")
    browser.wait_until("document.querySelector('input[value=argmax]') !== null")
    keyboard.press("ArrowDown")
    keyboard.submit()
    if "not saved yet" in browser.text(".notice"):  # the browser had kept the page as it was
        assert browser.evaluate("document.querySelector('input:checked').value") == "cost_benefit"
        keyboard.submit()
    assert browser.evaluate("document.querySelector('input[name=field]').value") == "unequal_severity"
    assert "Decision rule applied to predicted class scores\nweigh costs" in browser.text("aside .answers")


def test_on_a_telephone_the_names_of_the_rows_hide_no_input(
    service: Service, installed: tuple[Path, str], browser: Browser
) -> None:
    names = [f"stage {k}" for k in range(10)]
    keyboard = log_in(service, installed, browser, path="?item=costs", class_names=names)
    browser.size(360)
    keyboard.press("Tab", 18)
    left = "document.activeElement.getBoundingClientRect().left"
    name = "document.activeElement.closest('tr').querySelector('th').getBoundingClientRect()"
    for _ in range(18):
        browser.press("Tab", shift=True)
        assert browser.evaluate(f"{name}.left") >= 0
        assert browser.evaluate(left) >= browser.evaluate(f"{name}.right") - 1


@contextmanager
def other_site(goal: str) -> Iterator[int]:
    """The port of a site with one page, on which there is a link."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<title>Wiki</title><a href="{goal}">to the console</a>'.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        server.daemon_threads = True  # a browser keeps connections open that it may need later
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@pytest.mark.parametrize("host", [HOST, "localhost"], ids=["says Referer", "says Sec-Fetch-Site"])
def test_a_link_of_another_site_leads_to_its_page(
    service: Service, installed: tuple[Path, str], browser: Browser, host: str
) -> None:
    """Although the browser keeps the cookie back with such a request."""
    keyboard = Keyboard(browser)
    goal = f"http://{host}:{service.port}/console/interviews"
    with other_site(goal) as port:
        for is_logged_in in (False, True):
            browser.open(f"http://{OTHER_HOST}:{port}/")
            browser.evaluate("document.querySelector('a').click()")
            expected = "Interviews" if is_logged_in else "Log in"
            browser.wait_until(f"document.querySelector('h1')?.innerText === '{expected}'")
            browser.wait_until(ARRIVED)
            if not is_logged_in:
                browser.type(installed[1])
                keyboard.submit()
                assert browser.evaluate("location.href") == goal
    assert browser.complaints() == []


def test_a_copy_of_the_cookie_is_worth_nothing_after_the_logout(
    service: Service, installed: tuple[Path, str], browser: Browser
) -> None:
    log_in(service, installed, browser)
    address = f"http://{HOST}:{service.port}/console"
    (cookie,) = browser.call("Network.getCookies", urls=[address])["cookies"]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/console")
    assert installed[1] not in cookie["value"]

    def heading_with_the_copy() -> str:
        browser.call(
            "Network.setCookie", name=cookie["name"], value=cookie["value"], url=address, path="/console"
        )
        browser.open(f"{address}/interviews")
        return browser.text("h1")

    assert heading_with_the_copy() == "Interviews"
    with browser.navigation():
        browser.evaluate("document.querySelector('form.who button').click()")
    assert browser.text("h1") == "Log in"
    assert browser.call("Network.getCookies", urls=[address])["cookies"] == []
    assert heading_with_the_copy() == "Log in"
    assert "Your session is over" in browser.text("main")


def test_whoever_logs_out_everywhere_sees_the_login(
    service: Service, installed: tuple[Path, str], browser: Browser
) -> None:
    log_in(service, installed, browser)
    browser.open(f"http://{HOST}:{service.port}/console/sessions")
    assert browser.text("h1") == "Where reader is logged in"
    fits_a_telephone(browser)
    with browser.navigation():
        browser.evaluate("document.querySelector('main form button').click()")
    assert browser.text("h1") == "Log in"


def log_in(
    service: Service, installed: tuple[Path, str], browser: Browser, *, path: str = "", **interview: Any
) -> Keyboard:
    """Somebody in front of a new interview."""
    keyboard = Keyboard(browser)
    with service.connect() as connection:
        made = connection.post_json("/v1/admin/interviews", interview).body
    browser.open(f"http://{HOST}:{service.port}/console/login")
    keyboard.type(installed[1])
    keyboard.submit()
    browser.open(f"http://{HOST}:{service.port}/console/interviews/{made['id']}{path}")
    return keyboard


def test_the_page_of_a_job_follows_its_progress_until_the_end(
    service: Service, installed: tuple[Path, str], browser: Browser
) -> None:
    log_in(service, installed, browser)
    with Store.from_settings(Settings(data_directory=installed[0] / "data")) as store:
        store.jobs.submit("cycle", {}, actor="test")
        job = store.jobs.claim("test", lease_seconds=600)
        assert job is not None
        browser.open(f"http://{HOST}:{service.port}/console/jobs/{job.id}")
        assert browser.text("h1") == "cycle: running"
        browser.evaluate("window.isSamePage = true")
        store.jobs.report(job, {"fraction": 0.5})
        browser.wait_until("document.querySelector('.progress span')?.innerText === '50 %'")
        store.jobs.succeed(job, {})
        browser.wait_until("document.querySelector('h1').innerText === 'cycle: succeeded'")
    assert browser.evaluate("window.isSamePage") is True
    assert browser.evaluate("document.querySelector('[hx-get]')") is None
    assert browser.complaints() == []
    assert browser.barriers() == []
