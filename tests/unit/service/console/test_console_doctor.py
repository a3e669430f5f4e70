"""The doctor in the console: problems first, within a time limit."""

from datetime import UTC, datetime, timedelta

from lifelong_core.doctor.examination import SERVED
from lifelong_core.operations.administration.doctor import Examine, examine
from lifelong_core.operations.operation import Context
from lifelong_core.store import Scope
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console


def test_the_page_names_problems_first_and_how_to_mend_them(service: Service) -> None:
    soon = datetime.now(UTC) + timedelta(days=2)
    service.store.tokens.create("scanner", [Scope.PREDICT], expires_at=soon, actor="test")
    shown = Console(service, scope="read").get("/console/doctor").text
    assert "the token scanner expires on" in shown.replace("The token", "the token")
    assert "lifelong tokens rotate scanner" in shown
    assert shown.index('"chip warning"') < shown.index('"chip ok"')
    assert "There was no time" not in shown


def test_checks_that_do_not_start_in_time_are_named(service: Service) -> None:
    found = examine(Context(service.store, service.settings, "ann", patience_seconds=0.0), Examine())
    assert (found.checks, found.left_out) == ([], list(SERVED))
