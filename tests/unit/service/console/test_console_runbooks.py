"""The runbooks of the alerts as pages of the console, and the pages that they name."""

import re
from pathlib import Path

from tests.unit.service.conftest import Service
from tests.unit.service.console.test_console_access import SCOPES
from tests.unit.service.consoles import Console

RUNBOOKS = Path(__file__).parents[4] / "docs" / "runbooks"


def test_the_page_of_an_alert_is_its_runbook(service: Service) -> None:
    page = Console(service).get("/console/runbooks/LifelongErrorRate")
    assert page.status_code == 200
    assert "<h1>LifelongErrorRate</h1>" in page.text
    assert "<h2>What to do</h2>" in page.text
    assert "<th>status</th>" in page.text
    assert '<a href="/console/runbooks/LifelongSpoolFills">' in page.text
    assert '<a href="/console/tasks">/console/tasks</a>' in page.text
    assert "../" not in page.text, "no link leads out of the console"


def test_the_list_leads_to_every_runbook(service: Service) -> None:
    console = Console(service)
    assert '<a href="/console/runbooks/LifelongCycleRefused">' in console.get("/console/runbooks").text
    assert console.get("/console/runbooks/..%2F..%2FREADME").status_code == 404
    assert console.get("/console/runbooks/LifelongNothing").status_code == 404


def test_the_pages_that_runbooks_name_exist() -> None:
    exist = {re.sub(r"{[^}]+}", "NAME", path) for path in SCOPES}
    for file in RUNBOOKS.glob("*.md"):
        named = set(re.findall(r"`(/console[^`]*)`", file.read_text(encoding="utf-8")))
        assert {re.sub(r"[A-Z]+", "NAME", path) for path in named} <= exist, file.stem
