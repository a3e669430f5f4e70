"""Access to the pages of the console, and the protection of its forms."""

import html
import re
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import httpx
import pytest
from starlette.routing import Route

from lifelong_core.configuration.settings import Settings
from lifelong_service.application import create_application
from lifelong_service.console.route import COOKIE, HEADERS, ConsoleRoute
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import OURS, Console, with_task
from tests.unit.service.guard.test_access import GRANTS

PUBLIC = {
    "/console/",
    "/console/login",
    "/console/logout",
    "/console/console.css",
    "/console/htmx.js",
    "/console/{rest:path}",
}
SCOPES = {
    "/console": "read",
    "/console/start": "read",
    "/console/populations/{model}/{environment}": "read",
    "/console/cycles/{identifier}": "read",
    "/console/cycles/{identifier}/cycle.json": "read",
    "POST /console/cycles/{identifier}/replay": "operate",
    "/console/interviews": "read",
    "/console/audit": "read",
    "/console/populations/{model}/{environment}/dossier": "read",
    "/console/populations/{model}/{environment}/reports/{month}": "read",
    "/console/runbooks": "read",
    "/console/runbooks/{name}": "read",
    "/console/trainings": "read",
    "/console/trainings/{reference}": "read",
    "/console/trainings/{reference}/recipe.json": "read",
    "/console/doctor": "read",
    "/console/tokens": "read",
    "/console/tokens/{name}": "read",
    "POST /console/tokens": "admin",
    "POST /console/tokens/{name}/rotate": "admin",
    "POST /console/tokens/{name}/revoke": "admin",
    "POST /console/tokens/{name}/log-out": "admin",
    "/console/models": "read",
    "/console/models/{reference}": "read",
    "/console/models/{reference}/reports/{job}": "read",
    "/console/validations": "read",
    "/console/validations/{identifier}/report": "read",
    "/console/labels": "read",
    "/console/labels/{identifier}.csv": "read",
    "POST /console/labels": "operate",
    "/console/performance": "read",
    "/console/performance/{reference}/{environment}": "read",
    "/console/jobs": "read",
    "/console/jobs/{identifier}": "read",
    "/console/jobs/{identifier}/report": "read",
    "POST /console/jobs/{identifier}/cancel": "admin",
    "/console/proposals": "read",
    "/console/proposals/{identifier}": "read",
    "POST /console/proposals/{identifier}/accept": "operate",
    "POST /console/proposals/{identifier}/dismiss": "operate",
    "/console/tasks": "read",
    "/console/tasks/{task}": "read",
    "POST /console/tasks/{task}/shadow": "operate",
    "POST /console/tasks/{task}/canary": "operate",
    "POST /console/tasks/{task}/promote": "operate",
    "POST /console/tasks/{task}/end": "operate",
    "POST /console/tasks/{task}/rollback": "operate",
    "/console/heads/{model}": "read",
    "/console/heads/{model}/{environment}": "read",
    "/console/heads/{model}/{environment}/diff": "read",
    "POST /console/heads/{model}/{change}": "operate",
    "POST /console/heads/{model}/{environment}/{change}": "operate",
    "/console/predictions": "read",
    "/console/predictions/{identifier}": "read",
    "/console/knowledge": "read",
    "/console/knowledge/{task}": "read",
    "/console/knowledge/{task}/neighbours": "read",
    "/console/interviews/{identifier}": "read",
    "/console/interviews/{identifier}/answers": "read",
    "/console/interviews/{identifier}/attach": "read",
    "/console/interviews/{identifier}/choices": "read",
    "/console/interviews/{identifier}/resolve": "read",
    "/console/interviews/{identifier}/withdraw": "read",
    "/console/interviews/{identifier}/result": "read",
    "/console/interviews/{identifier}/recommendation.json": "read",
    "/console/sessions": "read",
    "POST /console/sessions/end": "read",
    "POST /console/interviews": "operate",
    "POST /console/interviews/{identifier}/answers": "operate",
    "POST /console/interviews/{identifier}/withdraw": "operate",
    "POST /console/interviews/{identifier}/resolve": "operate",
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
    return route.path.format(
        identifier=UUID(int=1),
        task="moles",
        reference="linear@1",
        job=UUID(int=1),
        environment="default",
        model="linear@1",
        change="pin",
        name="LifelongErrorRate",
        month="2026-10",
    )


def test_every_page_says_who_may_see_it() -> None:
    found = {
        (route.path if method == "GET" else f"{method} {route.path}"): route.access.scope
        for method, route in GUARDED
    }
    assert found == SCOPES
    assert not any(route.access.opens for _, route in ROUTES)


def test_pages_need_a_session_in_the_cookie(bare: Console) -> None:
    secret = bare.service.secrets["admin"]
    for method, route in GUARDED:
        for headers in (
            {},
            {"Content-Type": "application/x-nothing"},
            {"Cookie": f"{COOKIE}=ll_wrong"},
            {"Cookie": f"{COOKIE}={secret}"},
        ):
            # The client's own Authorization header, with the rights of an admin, counts for nothing here.
            answer = bare.service.client.request(method, path_of(route), headers=headers | OURS)
            assert answer.status_code == 303, route.path
            assert answer.headers["Location"].startswith("/console/login?next=/console")
            assert ("ended" in answer.headers["Location"]) == ("Cookie" in headers)


def test_pages_need_the_scope(bare: Console) -> None:
    one_of_each_rule = {(method, route.access): (method, route) for method, route in GUARDED}
    for method, route in one_of_each_rule.values():
        for scope in bare.service.secrets:
            bare.scope = scope
            answer = bare.service.client.request(method, path_of(route), headers=bare.headers() | OURS)
            assert (answer.status_code == 403) == (scope not in GRANTS[route.access.scope]), route.path
    assert "lacks the scope" in answer.text or answer.status_code != 403


def cookie_of(answer: httpx.Response) -> tuple[str, set[str]]:
    """Value and attributes of the cookie that an answer sets."""
    value, *attributes = (part.strip() for part in answer.headers["Set-Cookie"].split(";"))
    return value.removeprefix(f"{COOKIE}=").strip('"'), {attribute.lower() for attribute in attributes}


def log_in(console: Console, scope: str = "read", **headers: str) -> str:
    """The identifier of a new session, of a browser without any cookie before."""
    form = {"token": console.service.secrets[scope]}
    answer = console.service.client.post("/console/login", data=form, headers=OURS | headers)
    assert answer.status_code == 303, answer.text
    return cookie_of(answer)[0]


def status_of(console: Console, session: str, path: str = "/console") -> int:
    return console.service.client.get(path, headers={"Cookie": f"{COOKIE}={session}"}).status_code


def test_login_keeps_a_session_in_a_cookie_that_scripts_and_other_sites_do_not_see(bare: Console) -> None:
    secret = bare.service.secrets["read"]
    form = {"token": f" {secret}\n", "next": "/console/interviews"}
    for proxy, is_secure in ((None, False), ("https", True)):
        answer = bare.post("/console/login", form, **({"X-Forwarded-Proto": proxy} if proxy else {}))
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/console/interviews"
        session, attributes = cookie_of(answer)
        assert {"httponly", "samesite=strict", "path=/console"} <= attributes
        assert ("secure" in attributes) == is_secure
        assert not any(part.startswith(("expires", "max-age", "domain")) for part in attributes)
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", session)
        assert secret not in str(answer.headers)
        assert status_of(bare, session) == 200


def test_each_login_begins_a_new_session_and_ends_that_of_the_browser_before(bare: Console) -> None:
    first = log_in(bare)
    second = log_in(bare, Cookie=f"{COOKIE}={first}")
    assert second != first
    assert (status_of(bare, first), status_of(bare, second)) == (303, 200)
    chosen = log_in(bare, Cookie=f"{COOKIE}=chosen-by-somebody-else")
    assert chosen != "chosen-by-somebody-else"


def test_after_the_logout_a_copy_of_the_cookie_is_worth_nothing(bare: Console) -> None:
    session, other = log_in(bare), log_in(bare)
    headers = OURS | {"Cookie": f"{COOKIE}={session}"}
    ended = bare.service.client.post("/console/logout", headers=headers)
    assert ended.headers["Location"] == "/console/login"
    assert cookie_of(ended)[0] == ""
    assert (status_of(bare, session), status_of(bare, other)) == (303, 200)


def test_whoever_logs_out_everywhere_is_logged_out_everywhere(bare: Console) -> None:
    session, other = log_in(bare), log_in(bare)
    strangers = log_in(bare, "admin")
    headers = OURS | {"Cookie": f"{COOKIE}={session}"}
    page = bare.service.client.get("/console/sessions", headers=headers)
    assert page.text.count("127.0.0.1") == 2
    assert session not in page.text
    ended = bare.service.client.post("/console/sessions/end", headers=headers)
    assert ended.headers["Location"] == "/console/login"
    assert [status_of(bare, one) for one in (session, other, strangers)] == [303, 303, 200]


def test_all_workers_know_a_session_and_its_end(bare: Console, serve: Callable[..., Service]) -> None:
    other = Console(serve())
    session = log_in(bare)
    assert status_of(other, session) == 200
    other.service.client.post("/console/logout", headers=OURS | {"Cookie": f"{COOKIE}={session}"})
    assert status_of(bare, session) == 303


def test_a_session_ends_with_a_rotation_or_revocation_of_its_token(bare: Console) -> None:
    tokens = bare.service.store.tokens
    rotated, revoked = log_in(bare, "read"), log_in(bare, "operate")
    tokens.rotate("read-token", actor="test", overlap=timedelta(days=1))
    tokens.revoke("operate-token", actor="test")
    assert (status_of(bare, rotated), status_of(bare, revoked)) == (303, 303)


def test_use_prolongs_a_session(serve: Callable[..., Service]) -> None:
    console = Console(serve(console_idle_seconds=100, console_session_seconds=150))
    session = log_in(console)
    (begun,) = console.service.store.console_sessions.list()
    assert (begun.valid_until - begun.created_at).total_seconds() == 100
    assert (begun.ends_at - begun.created_at).total_seconds() == 150
    assert status_of(console, session) == 200
    console.service.worker.console_sessions.note_uses()
    (used,) = console.service.store.console_sessions.list()
    assert used.used_at > begun.used_at
    assert used.valid_until - used.used_at == begun.valid_until - begun.used_at


def test_the_token_of_a_session_counts_as_used(bare: Console) -> None:
    status_of(bare, log_in(bare))
    uses = bare.service.worker.authenticator.take_uses()
    read = next(token for token in bare.service.store.tokens.list() if token.name == "read-token")
    assert read.id in uses


def test_while_the_database_is_away_nobody_is_logged_out(bare: Console) -> None:
    session = log_in(bare)
    file = bare.service.settings.data_directory / "lifelong.db"
    aside = file.rename(file.with_suffix(".aside"))
    while (
        answer := bare.service.client.get("/console", headers={"Cookie": f"{COOKIE}={session}"})
    ).status_code == 200:
        pass
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert "Set-Cookie" not in answer.headers
    refused = bare.service.client.post(
        "/console/login", data={"token": bare.service.secrets["read"]}, headers=OURS
    )
    assert refused.status_code == 503
    ended = bare.service.client.post("/console/logout", headers=OURS | {"Cookie": f"{COOKIE}={session}"})
    assert ended.status_code == 503
    assert "this browser is logged out" in ended.text.lower()
    assert cookie_of(ended)[0] == ""
    aside.rename(file)
    deadline = time.monotonic() + 10
    while status_of(bare, session) != 200:
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("headers", "leads_on"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Referer": "http://wiki.test/page"}, True),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Referer": "http://test/console"}, False),
        ({"Referer": "http://test/console"}, False),
        ({}, False),
    ],
)
def test_a_link_of_another_site_leads_to_the_page(
    bare: Console, headers: dict[str, str], leads_on: bool
) -> None:
    """The browser keeps the cookie back at first, as it does for all requests that other sites cause."""
    client = bare.service.client
    page = f"/console/interviews/{UUID(int=1)}?item=FP2.6"
    redirected = client.get(page, headers=headers)
    answer = client.get(redirected.headers["Location"])
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)
    assert bool(found) == leads_on
    assert ('name="token"' in answer.text) != leads_on
    if found is None:
        return
    again = html.unescape(found[1])
    assert client.get(again, headers={"Cookie": f"{COOKIE}={log_in(bare)}"}).headers["Location"] == page
    assert 'name="token"' in client.get(again).text


def test_whoever_is_logged_in_needs_no_login(bare: Console) -> None:
    headers = {"Cookie": f"{COOKIE}={log_in(bare)}"}
    answer = bare.service.client.get("/console/login?next=/console/interviews", headers=headers)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/console/interviews")


def test_failed_logins_are_limited_and_the_page_says_so(serve: Callable[..., Service]) -> None:
    console = Console(serve(failed_logins_per_minute=3))
    session = log_in(console)
    for _ in range(3):
        assert attempt(console, "ll_wrong").status_code == 401
    for token in ("ll_wrong", "", console.service.secrets["read"]):
        answer = attempt(console, token)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 20
        assert "Too many logins from your address have failed. Try again in" in answer.text
        assert 'name="token"' in answer.text
        assert "Set-Cookie" not in answer.headers
    assert attempt(console, console.service.secrets["read"], address="10.0.0.9").status_code == 303
    assert status_of(console, session) == 200
    text = console.service.client.get("/metrics").text
    assert re.search(r'refused_requests_total\{limit="failed_logins",token="anonymous"\} [1-9]', text)


def attempt(console: Console, token: str, *, address: str | None = None) -> httpx.Response:
    client = console.service.client
    if address is None:
        return client.post("/console/login", data={"token": token}, headers=OURS)
    transport = httpx.ASGITransport(client.app, client=(address, 4711))

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as other:
            return await other.post("/console/login", data={"token": token}, headers=OURS)

    return client.run(send())


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
        "/console/knowledge/..",
        "/console/knowledge?search=//evil",
        "/console?a=b#//evil",
        "",
    ):
        answer = bare.post("/console/login", {"token": bare.service.secrets["read"], "next": goal})
        assert answer.headers["Location"] == "/console"


def test_a_session_that_is_over_leads_to_the_login_and_back(bare: Console) -> None:
    assert bare.get("/console/interviews").status_code == 200
    bare.service.store.tokens.revoke("operate-token", actor="test")
    answer = bare.get("/console/interviews")
    login = bare.service.client.get(answer.headers["Location"])
    assert "Your session is over" in login.text
    assert '<input type="hidden" name="next" value="/console/interviews">' in login.text
    assert "was not saved" not in login.text
    question = f"/console/interviews/{UUID(int=1)}?item=FP2.6"
    login = bare.service.client.get(bare.get(question).headers["Location"])
    assert f'name="next" value="{question}"' in login.text
    again = bare.post("/console/login", {"token": bare.service.secrets["read"], "next": question})
    assert again.headers["Location"] == question
    plain = "/console/knowledge/some_task-1.2?scenario=co_training&measure=BA"
    login = bare.service.client.get(bare.get(plain).headers["Location"])
    assert f'name="next" value="{html.escape(plain)}"' in login.text
    odd = bare.get("/console/knowledge?search=%2F%2Fevil")
    assert odd.headers["Location"] == "/console/login?next=/console/knowledge&ended=true"
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
    style = console.service.client.get(sheet[1])
    assert style.headers["Content-Type"].startswith("text/css")
    assert "max-age" in style.headers["Cache-Control"]


def test_forms_that_are_too_much_are_the_senders_to_fix(bare: Console) -> None:
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
