"""Forms are confirmed before they change anything; roles by scope; the navigation."""

import re
from uuid import uuid4

import pytest

from lifelong_service.console import ROUTERS
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console

UNASKED = ("login", "logout", "interviews", "answers", "choices", "withdraw", "resolve", "end", "{rest:path}")
"""Ends of the paths of forms that ask nothing: sessions, and answers of an interview."""


@pytest.fixture
def console(service: Service) -> Console:
    return Console(service)


def test_a_form_changes_nothing_before_it_is_confirmed(console: Console) -> None:
    job = console.service.store.jobs.submit("retrain", {"task": "skin"}, actor="ann")
    admin = Console(console.service, scope="admin")
    path = f"/console/jobs/{job.id}/cancel"
    asked = admin.ask(path, {"note": "<b>"})
    assert asked.status_code == 200
    for text in (
        "Cancel the job?",
        "retrain, submitted by ann",
        "a change by admin-token",
        "To undo it: Submit the job again.",
        f'action="{path}"',
        'name="note" value="&lt;b&gt;"',
        f'href="/console/jobs/{job.id}">Leave it as it is',
    ):
        assert text in asked.text
    assert console.service.store.jobs.get(job.id).state == "queued"
    done = admin.post(path)
    assert (done.status_code, done.headers["Location"]) == (303, f"/console/jobs/{job.id}")
    assert console.service.store.jobs.get(job.id).state == "cancelled"
    name, value = done.headers["Set-Cookie"].partition(";")[0].split("=")
    headers = admin.headers() | {"Cookie": f"{admin.headers()['Cookie']}; {name}={value}"}
    shown = console.service.client.get(f"/console/jobs/{job.id}", headers=headers)
    assert "Done by admin-token: cancel the job." in shown.text
    assert f'{name}=""' in shown.headers["Set-Cookie"]
    forged = headers | {"Cookie": f"{admin.headers()['Cookie']}; {name}=<b>"}
    assert "Done by" not in console.service.client.get("/console/jobs", headers=forged).text


def test_every_form_asks_or_is_known_to_change_nothing_that_serves(console: Console) -> None:
    """Sent without what it needs: a form that asks shows a page or refuses, and never redirects."""
    admin = Console(console.service, scope="admin")
    paths = {
        route.path
        for router in ROUTERS
        for route in router.routes
        if "POST" in route.methods and not route.path.endswith(UNASKED)
    }
    assert len(paths) > 5
    for path in sorted(paths):
        filled = re.sub("{identifier}", str(uuid4()), path)
        answer = admin.ask(re.sub("{[a-z]+}", "skin", filled))
        assert answer.status_code in (200, 404, 409, 422), (path, answer.text)


def test_the_navigation_marks_the_page(console: Console) -> None:
    shown = console.get("/console/tasks/skin").text
    assert '<a href="/console/tasks" aria-current="true">Tasks</a>' in shown
    assert shown.count("aria-current") == 1
    assert '<a href="/console/tasks" aria-current="page">' in console.get("/console/tasks").text
    assert "Menu" not in console.service.client.get("/console/login").text
