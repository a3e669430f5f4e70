"""A reverse proxy serves the service below a path: all that a browser follows has it."""

import html
import re
from collections.abc import Callable

import pytest

from tests.unit.service.conftest import Service
from tests.unit.service.consoles import OURS, Console, with_task
from tests.unit.service.routes.admin.test_interviews import ANSWERS

PREFIX = "/clinic/lifelong"
LINKS = re.compile(r'(href|src|action|\d; url)="?([^"#][^"]*)"')


@pytest.fixture
def console(registered: None, serve: Callable[..., Service]) -> Console:
    return Console(serve(root_path=PREFIX), scope="admin")


@pytest.mark.parametrize("kept", ["", PREFIX], ids=["proxy strips it", "proxy keeps it"])
def test_every_link_of_every_page_has_the_prefix(console: Console, kept: str) -> None:
    console.begin()
    console.begin(**ANSWERS)
    open_pages, seen = ["/console"], set[str]()
    while open_pages:
        path = open_pages.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = console.get(kept + path)
        assert answer.status_code in (200, 303), f"{path}: {answer.text}"
        found = LINKS.findall(answer.text)
        found += [("href", answer.headers["Location"])] if "Location" in answer.headers else []
        assert [link for _, link in found if not link.startswith((f"{PREFIX}/console", "data:"))] == [], path
        open_pages += [
            html.unescape(link.removeprefix(PREFIX))
            for kind, link in found
            if kind == "href" and not link.startswith("data:") and len(seen) < 60
        ]
    assert {"/console/interviews", "/console/tasks", "/console/audit", "/console/sessions"} <= seen
    assert any("result" in path for path in seen)


def test_redirects_and_cookies_have_the_prefix(console: Console) -> None:
    client, secret = console.service.client, console.service.secrets["admin"]
    form = {"token": secret, "next": "/console/tasks"}
    login = client.post("/console/login", data=form, headers=OURS)
    assert login.headers["Location"] == f"{PREFIX}/console/tasks"
    assert f"; Path={PREFIX}/console;" in login.headers["Set-Cookie"]
    assert f"; Path={PREFIX}/console;" in console.post("/console/logout").headers["Set-Cookie"]
    asked = client.get(f"{PREFIX}/console/tasks")
    assert asked.headers["Location"] == f"{PREFIX}/console/login?next=/console/tasks"
    assert (
        client.get("/").headers["Location"] == client.get(PREFIX).headers["Location"] == f"{PREFIX}/console"
    )


def test_the_api_is_below_the_prefix_too(console: Console) -> None:
    client = console.service.client
    assert client.get("/openapi.json").json()["servers"] == [{"url": PREFIX}]
    job = client.post(f"{PREFIX}/v1/admin/populations/linear@1/default/cycle")
    assert job.headers["Location"] == f"{PREFIX}/v1/admin/jobs/{job.json()['id']}"
    assert client.get(job.headers["Location"]).json()["id"] == job.json()["id"]
    assert client.get(f"{PREFIX}er/v1/admin/tasks").status_code == 404


def test_without_a_prefix_nothing_changes(serve: Callable[..., Service]) -> None:
    service = with_task(serve()).service
    assert "servers" not in service.client.get("/openapi.json").json()
    assert service.client.get("/").headers["Location"] == "/console"
