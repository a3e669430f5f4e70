"""Decisions about heads in a real browser: from the link of an alert to approve, roll back and pin; a prediction."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import (
    Cycle,
    LogEntry,
    NewLabel,
    Prediction,
    RequestKey,
    Scope,
    Store,
    new_prediction_id,
)
from lifelong_core.store.log.finding import Filter
from lifelong_monitor.cycle.cycle import run_cycle
from tests.integration.browser import Browser, running_browser
from tests.integration.installation import install
from tests.integration.processes import Service, running_service

MODEL = "remote@1"
MOST_CLICKS = 4
"""Of the on-call person, from the page that an alert links to until the decision is carried out."""
STICKING_OUT = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@dataclass(frozen=True)
class Console:
    """A browser in front of a service, and what is in its store."""

    service: Service
    browser: Browser
    store: Store
    secrets: dict[str, str]

    def log_in(self, scope: str) -> None:
        self.browser.call("Network.clearBrowserCookies")
        self.open("/login")
        self.browser.type(self.secrets[scope])
        with self.browser.navigation():
            self.browser.press("Enter")

    def open(self, path: str) -> None:
        self.browser.open(f"http://127.0.0.1:{self.service.port}/console{path}")

    def click(self, selector: str, text: str = "") -> None:
        """Click the first such element with this text; it leads to another page."""
        with self.browser.navigation():
            assert self.browser.evaluate(
                f"(() => {{ const found = [...document.querySelectorAll({selector!r})]"
                f".find(one => one.innerText.includes({text!r})); found?.click(); return found !== undefined; }})()"
            ), f"no {selector} with {text!r} on {self.browser.evaluate('location.href')}"

    def fill_in(self, selector: str, text: str) -> None:
        self.browser.evaluate(f"document.querySelector({selector!r}).focus()")
        self.browser.type(text)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    installation = install(tmp_path_factory.mktemp("decisions"))
    with installation.store() as store:
        secrets = {
            scope: store.tokens.create(scope, [Scope(scope)], actor="test")[1]
            for scope in ("read", "operate")
        }
        log(store)
        with (
            running_service(
                installation.settings.data_directory.parent, installation.token, workers=1
            ) as service,
            running_browser() as browser,
        ):
            service.wait_until_ready()
            browser.size(1280)
            yield Console(service, browser, store, secrets)
    assert browser.complaints() == []


def log(store: Store) -> None:
    """200 predictions in each of twenty environments, some of them labelled."""
    model = store.models.get(MODEL)
    rng = np.random.default_rng(0)
    for number in range(20):
        environment = f"hospital-{number}"
        store.environments.ensure(environment, limit=100)
        logits = rng.normal(size=(200, 3)).astype(np.float32)
        decisions = store.heads.get(MODEL, 1).head.apply(logits).decisions.tolist()
        entries = [
            LogEntry(
                (Prediction(new_prediction_id(), model.id, environment, 1, decided, row, b"g" * 16),),
                RequestKey(model.id, environment, f"{environment}-{index}"),
                b"body",
            )
            for index, (row, decided) in enumerate(zip(logits, decisions, strict=True))
        ]
        store.predictions.append(entries)
        labelled = [NewLabel(one.predictions[0].id, 2, "lab") for one in entries[-5:]]
        store.labels.record(labelled, actor="ann")


def propose(store: Store, environment: str) -> Cycle:
    """What a monitor records in mode propose after a shift."""
    at = datetime.now(UTC)
    served = store.heads.get(MODEL, store.heads.serving(MODEL, environment) or 1)
    candidate = replace(
        served.head, assumed_prevalence=[0.2, 0.1, 0.7], bias=served.head.bias + np.array([-0.8, -0.2, 1.0])
    )
    cycle = Cycle(
        id=new_prediction_id(),
        model_id=store.models.get(MODEL).id,
        environment=environment,
        due_at=at,
        started_at=at,
        finished_at=at,
        outcome="swap",
        report={
            "schema_version": 2,
            "outcome": "swap",
            "reasons": [{"code": "gain_sufficient", "text": "The other head saves 0.21 per prediction."}],
            "assumed_prevalence": served.head.assumed_prevalence.tolist(),
            "samples": 200,
        },
        window_samples=200,
        log_position=store.predictions.log_position(),
        head_version=served.version,
        published_version=None,
    )
    activations = store.heads.activations(MODEL, environment=environment)
    return store.cycles.finish(
        cycle,
        candidate=replace(candidate, provenance={"cycle": str(cycle.id)}),
        expected_sequence=activations[-1].sequence if activations else 0,
        mode="propose",
    )


def test_the_person_on_call_decides_within_five_clicks(console: Console) -> None:
    """3 a.m., one of twenty hospitals has shifted: from the link of the alert to the head in force."""
    cycle = propose(console.store, "hospital-7")
    console.log_in("operate")
    console.open(f"/populations/{MODEL}/hospital-7")
    clicks = 0
    for selector, text in (
        ("main a", "Look at the proposed head"),
        ("main a", "Approve or reject it"),
        ("main button", "Approve"),
        ("main button", "Approve the proposed head"),
    ):
        console.click(selector, text)
        clicks += 1
    assert clicks <= MOST_CLICKS
    assert "Done by operate: approve the proposed head." in console.browser.text(".done")
    assert "70 % malignant" in console.browser.text(".lead")
    assert console.store.cycles.get(cycle.id).published_version == console.store.heads.serving(
        MODEL, "hospital-7"
    )


def test_the_fleet_leads_to_a_population_and_to_its_cycle(console: Console) -> None:
    """A real cycle over noise, which is no shift of the prevalence."""
    place, model = "hospital-12", console.store.models.get(MODEL)
    judged = run_cycle(console.store, Settings(), model, place, datetime.now(UTC)).last
    assert judged is not None
    console.log_in("read")
    assert console.browser.evaluate("location.pathname") == "/console"
    assert console.browser.text("h1") == "Fleet"
    console.click("main nav a", "name")
    console.click("main table a", place)
    assert console.browser.text("h1").startswith(place)
    console.click("main table a")
    assert console.browser.evaluate("location.pathname") == f"/console/cycles/{judged.id}"
    for reason in judged.report["reasons"]:
        assert reason["text"] in console.browser.text("main")
    for path in ("", f"/populations/{MODEL}/{place}", f"/cycles/{judged.id}"):
        for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
            console.browser.size(width, scheme=scheme)
            console.open(path)
            assert console.browser.barriers() == [], (path, width, scheme)
            assert console.browser.evaluate(STICKING_OUT) <= 0, (path, width)
    console.browser.size(1280)


def test_a_head_is_rolled_back_and_pinned_and_unpinned(console: Console) -> None:
    heads, place = console.store.heads, "hospital-3"
    console.store.cycles.approve(propose(console.store, place).id, actor="ann")
    console.log_in("operate")
    console.open(f"/heads/{MODEL}/{place}")
    console.fill_in("#rollback-reason", "the scanner is new")
    console.click("button", "Roll back")
    assert "It is pinned ('the scanner is new')" in console.browser.text("main")
    assert heads.serving(MODEL, place) != 1  # nothing happens before the confirmation
    console.click("button", "Roll the head back")
    assert heads.serving(MODEL, place) == 1
    assert "Pinned by operate" in console.browser.text("main")
    console.click("button", "Unpin")
    console.click("a.button", "Leave it as it is")
    assert [pin.environment for pin in heads.pins(MODEL)] == [place]
    console.click("button", "Unpin")
    console.click("button", "Unpin the head")
    assert heads.pins(MODEL) == []


def test_a_prediction_is_found_and_explained(console: Console) -> None:
    console.log_in("operate")
    console.click("nav a", "Predictions")
    console.fill_in("#find", "hospital-5-199")
    console.click("button", "Find")
    console.click("main table a")
    assert console.browser.text("h1").startswith("Decided: ")
    assert "Its label" in console.browser.text(".lead")
    decided = console.browser.evaluate("document.querySelector('.chip').closest('tr').innerText")
    assert decided.split("\n")[0].split()[0] in console.browser.text("h1")


def test_a_token_that_may_only_read_sees_no_form_that_changes_anything(console: Console) -> None:
    propose(console.store, "hospital-9")
    console.log_in("read")
    links = console.browser.evaluate("[...document.querySelectorAll('nav a')].map(link => link.pathname)")
    assert len(links) > 8
    for path in (
        *links,
        "/console/heads/remote@1/hospital-9",
        "/console/heads/remote@1",
        "/console/tasks/skin",
    ):
        console.open(path.removeprefix("/console"))
        assert console.browser.text("h1") not in ("Forbidden", "Not Found"), path
        forms = console.browser.evaluate(
            "[...document.querySelectorAll('form[method=post]')].map(form => form.getAttribute('action'))"
        )
        assert forms == ["/console/logout"], path


def test_the_pages_have_no_barriers_and_fit_a_telephone(console: Console) -> None:
    propose(console.store, "hospital-11")
    console.log_in("operate")
    newest = console.store.finder.page(Filter(), limit=1).predictions[0]
    for path in (
        f"/heads/{MODEL}/hospital-11",
        f"/heads/{MODEL}/hospital-7/diff?version=1&other=2",
        "/predictions?model=remote@1&environment=hospital-2",
        f"/predictions/{newest.id}",
    ):
        for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
            console.browser.size(width, scheme=scheme)
            console.open(path)
            assert console.browser.barriers() == [], (path, width, scheme)
            assert console.browser.evaluate(STICKING_OUT) <= 0, (path, width)
    console.browser.evaluate("document.querySelector('.menu summary').focus()")
    console.browser.press("Enter")
    assert "Predictions" in console.browser.text(".menu nav")
    console.browser.size(1280)
