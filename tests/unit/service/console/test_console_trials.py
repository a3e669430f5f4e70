"""Tasks in the console: trials, promotions and roll-back."""

from collections.abc import Callable

import pytest

from lifelong_core.store import Store
from tests.unit.service.conftest import Service, png
from tests.unit.service.consoles import Console
from tests.unit.service.prediction.test_trials import add_candidate
from tests.unit.service.waiting import eventually

PATH = "/console/tasks/skin"
CANDIDATE = {"model": "linear@2"}


@pytest.fixture
def console(registered: None, store: Store, serve: Callable[..., Service]) -> Console:
    add_candidate(store)
    return Console(serve())


@pytest.fixture(scope="module")
def refusing(shared: Service) -> Console:
    """The console of a service that tests leave as it is."""
    add_candidate(shared.store)
    shared.store.tasks.add("other", ["a", "b"], [[0, 1], [1, 0]], actor="test")
    shared.store.models.add("other", "other", kind="external", actor="test")
    return Console(shared)


def send(console: Console, what: str, form: dict[str, str]) -> str:
    """Send a form that succeeds; return the page that follows."""
    sent = console.post(f"{PATH}/{what}", form)
    assert (sent.status_code, sent.headers["Location"]) == (303, PATH), sent.text
    return console.get(PATH).text


def test_a_model_is_tried_promoted_and_rolled_back(console: Console) -> None:
    service = console.service
    assert 'href="/console/tasks/skin"' in console.get("/console/tasks").text
    page = console.get(PATH).text
    for text in (
        "linear@1 is promoted.",
        "No model is on trial.",
        '<option value="linear@2">',
        "Start as shadow",
    ):
        assert text in page
    assert "remote@1</option>" not in page  # it runs elsewhere
    page = send(console, "shadow", CANDIDATE)
    assert "linear@2 is on trial as a shadow: it decides for the log only." in page
    assert "no cycle and no label" in page
    eventually(lambda: service.worker.snapshot.registry.rollouts)
    served = service.client.post("/v1/predict?environment=site-a", content=png(9)).json()
    eventually(lambda: service.logged() == 2)
    label = {"prediction_id": served["prediction_id"], "label": 0}
    assert service.client.post("/v1/feedback", json=label).status_code == 200
    page = console.get(PATH).text
    assert page.count('<th scope="row">site-a</th>') == 2
    page = send(console, "canary", CANDIDATE | {"percent": "12,5 %"})
    assert "linear@2 is on trial as a canary: it answers 12.5 % of the groups." in page
    assert "canary 12.5 %" in console.get("/console/tasks").text
    assert "Make it a shadow again" in page
    page = send(console, "promote", CANDIDATE)
    assert "linear@2 is promoted." in page
    assert "Roll back to linear@1" in page
    page = send(console, "rollback", {"sequence": "2"})
    assert "linear@1 is promoted." in page
    assert "rolled back to" in page
    assert "promoted or on trial earlier" in page
    send(console, "shadow", CANDIDATE)
    assert "No model is on trial." in send(console, "end", {})


@pytest.mark.parametrize(
    ("what", "form", "status", "said"),
    [
        ("canary", CANDIDATE | {"percent": "lots"}, 422, "expected a number of percent"),
        ("canary", CANDIDATE | {"percent": "120"}, 422, "expected a share above 0"),
        ("end", {}, 404, "on trial"),
        ("rollback", {"sequence": "1"}, 409, "promoted before"),
        ("rollback", {"sequence": "9" * 5000}, 422, "names no promotion"),
        ("rollback", {}, 422, "names no promotion"),
        ("shadow", {"model": "linear@1"}, 409, "already"),
        ("shadow", {"model": "linear@9"}, 404, "there is no model"),
        ("shadow", {"model": "other@1"}, 422, "no model of skin"),
    ],
)
def test_a_refused_form_shows_the_page_with_the_reason(
    refusing: Console, what: str, form: dict[str, str], status: int, said: str
) -> None:
    answer = refusing.post(f"{PATH}/{what}", form)
    assert answer.status_code == status
    assert 'role="alert"' in answer.text
    assert said in answer.text.lower() or said in answer.text
    assert refusing.service.store.rollouts.current("skin") is None


def test_a_reader_sees_the_figures_and_no_buttons(console: Console) -> None:
    send(console, "shadow", CANDIDATE)
    reader = Console(console.service, scope="read")
    page = reader.get(PATH).text
    assert "linear@2 is on trial" in page
    for button in ("Promote</button>", "End the trial</button>", "Let it answer"):
        assert button not in page
    assert reader.post(f"{PATH}/end").status_code == 403
    assert reader.get("/console/tasks/missing").status_code == 404
