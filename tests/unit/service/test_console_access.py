"""Who may see which page of the console, and what protects its forms."""

import html
import re
from collections.abc import Callable
from uuid import UUID

import pytest
from starlette.routing import Route

from lifelong_core.settings import Settings
from lifelong_service.application import create_application
from lifelong_service.console.route import COOKIE, HEADERS, ConsoleRoute
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import OURS, Console, with_task
from tests.unit.service.test_access import GRANTS

PUBLIC = {"/console/", "/console/login", "/console/logout", "/console/console.css", "/console/{rest:path}"}
SCOPES = {
    "/console": "read",
    "/console/interviews": "read",
    "/console/interviews/{identifier}": "read",
    "/console/interviews/{identifier}/result": "read",
    "/console/interviews/{identifier}/recommendation.json": "read",
    "POST /console/interviews": "operate",
    "POST /console/interviews/{identifier}/answers": "operate",
    "POST /console/interviews/{identifier}/withdraw": "operate",
    "POST /console/interviews/{identifier}/mend": "operate",
    "POST /console/interviews/{identifier}/choices": "operate",
    "POST /console/interviews/{identifier}/discard": "operate",
    "POST /console/interviews/{identifier}/attach": "admin",
}
ROUTES = [
    (method, route)
    for route in create_application(Settings()).routes
    if isinstance(route, ConsoleRoute)
    for method in sorted(route.methods)
]
GUARDED = [(method, route) for method, route in ROUTES if route.path not in PUBLIC]


@pytest.fixture
def bare(serve: Callable[..., Service]) -> Console:
    return Console(serve())


@pytest.fixture
def console(bare: Console) -> Console:
    return with_task(bare.service)


def path_of(route: Route) -> str:
    return route.path.format(identifier=UUID(int=1))


def test_every_page_says_who_may_see_it() -> None:
    found = {
        (route.path if method == "GET" else f"{method} {route.path}"): route.access.scope
        for method, route in GUARDED
    }
    assert found == SCOPES
    assert not any(route.access.opens for _, route in ROUTES)


def test_pages_need_a_token_in_the_cookie(bare: Console) -> None:
    for method, route in GUARDED:
        for headers in ({}, {"Cookie": f"{COOKIE}=ll_wrong"}):
            # The client's own Authorization header, with the rights of an admin, counts for nothing here.
            answer = bare.service.client.request(method, path_of(route), headers=headers | OURS)
            assert answer.status_code == 303, route.path
            assert answer.headers["Location"].startswith("/console/login?next=/console")
            assert ("ended" in answer.headers["Location"]) == bool(headers)


def test_pages_need_the_scope(bare: Console) -> None:
    for method, route in GUARDED:
        for scope in bare.service.secrets:
            bare.scope = scope
            answer = bare.service.client.request(method, path_of(route), headers=bare.headers() | OURS)
            assert (answer.status_code == 403) == (scope not in GRANTS[route.access.scope]), route.path
    assert "lacks the scope" in answer.text or answer.status_code != 403


def test_login_keeps_the_token_in_a_cookie_that_scripts_and_other_sites_do_not_see(bare: Console) -> None:
    form = {"token": f" {bare.service.secrets['read']}\n", "next": "/console/interviews"}
    for proxy, is_secure in ((None, False), ("https", True)):
        answer = bare.post("/console/login", form, **({"X-Forwarded-Proto": proxy} if proxy else {}))
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/console/interviews"
        attributes = {part.strip().lower() for part in answer.headers["Set-Cookie"].split(";")}
        assert {"httponly", "samesite=strict", "path=/console"} <= attributes
        assert ("secure" in attributes) == is_secure
        assert not any(part.startswith(("expires", "max-age", "domain")) for part in attributes)
    ended = bare.post("/console/logout")
    assert ended.headers["Location"] == "/console/login"
    assert f'{COOKIE}="";' in ended.headers["Set-Cookie"]


def test_a_wrong_token_gets_the_form_with_a_message(bare: Console) -> None:
    for token, status, words in (
        ("", 401, "Paste a token first"),
        ("ll_wrong", 401, "unknown, expired or revoked"),
        (bare.service.secrets["predict"], 403, "lacks the scope 'read'"),
    ):
        answer = bare.post("/console/login", {"token": token})
        assert answer.status_code == status
        assert words in html.unescape(answer.text)
        assert 'aria-describedby="token-help token-error" aria-invalid="true"' in answer.text
        assert "Set-Cookie" not in answer.headers
        assert not token or token not in answer.text


def test_login_leads_nowhere_else(bare: Console) -> None:
    for goal in (
        "https://evil.test/",
        "//evil.test",
        "/console/../v1",
        "/console\\@evil",
        "/console?item=//evil",
        "",
    ):
        answer = bare.post("/console/login", {"token": bare.service.secrets["read"], "next": goal})
        assert answer.headers["Location"] == "/console"


def test_a_revoked_token_leads_to_the_login_and_back(bare: Console) -> None:
    bare.service.store.tokens.revoke("operate-token", actor="test")
    while (answer := bare.get("/console/interviews")).status_code == 200:
        pass
    login = bare.service.client.get(answer.headers["Location"])
    assert "no longer valid" in login.text
    assert '<input type="hidden" name="next" value="/console/interviews">' in login.text
    assert "was not saved" not in login.text
    question = f"/console/interviews/{UUID(int=1)}?item=FP2.6"
    login = bare.service.client.get(bare.get(question).headers["Location"])
    assert f'name="next" value="{question}"' in login.text
    again = bare.post("/console/login", {"token": bare.service.secrets["read"], "next": question})
    assert again.headers["Location"] == question
    sent = bare.post(f"/console/interviews/{UUID(int=1)}/answers")
    login = bare.service.client.get(sent.headers["Location"])
    assert f'name="next" value="/console/interviews/{UUID(int=1)}"' in login.text
    assert "What you sent last was not saved." in login.text


def test_every_answer_of_the_console_has_the_headers_that_protect_it(console: Console) -> None:
    path = console.begin()
    answers = [
        console.get("/console"),
        console.get(path),
        console.get("/console/nothing"),
        console.get(f"/console/interviews/{UUID(int=1)}"),
        console.post(f"{path}/answers", {}, **{"Sec-Fetch-Site": "cross-site"}),
        console.service.client.get("/console", headers={}),
        console.service.client.get("/console/login"),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 404, 403, 303, 200]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "<script" not in answer.text
        assert not re.search(r"style=|https?://", answer.text)
    sheet = re.search(r'rel="stylesheet" href="([^"]+)"', answers[0].text)
    assert sheet is not None
    style = console.service.client.get(sheet[1])
    assert style.headers["Content-Type"].startswith("text/css")
    assert "max-age" in style.headers["Cache-Control"]


def test_forms_that_are_too_much_are_the_senders_to_mend(bare: Console) -> None:
    for form in ({f"field{index}": "" for index in range(1001)}, {"token": "x" * 2**20}):
        answer = bare.post("/console/login", form)
        assert answer.status_code == 400
        assert "axim" in answer.text
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


ORIGINS = [
    ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, True),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "http://test"}, False),
    ({"Sec-Fetch-Site": "same-site", "Origin": "http://test"}, False),
    ({"Origin": "http://test"}, True),
    ({"Origin": "https://test"}, True),
    ({"Origin": "http://test.evil"}, False),
    ({"Origin": "null"}, False),
    ({}, False),
]
"""What browsers say of where a form comes from, and whether it is taken."""


def test_forms_of_other_sites_are_refused(bare: Console) -> None:
    for headers, is_taken in ORIGINS:
        before = len(bare.service.store.interviews.list())
        answer = bare.service.client.post("/console/interviews", data={}, headers=bare.headers() | headers)
        assert answer.status_code == (303 if is_taken else 403), headers
        assert len(bare.service.store.interviews.list()) == before + is_taken
        assert is_taken or "was not sent by a page of this console" in answer.text
