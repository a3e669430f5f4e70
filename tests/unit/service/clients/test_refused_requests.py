"""Refused requests are in the audit log: without secrets, and so few entries that a flood cannot fill the database."""

import logging
import re
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.requests import Request

from lifelong_core.store import AuditEntry, Scope, Store
from lifelong_core.store.access.audit_chain import AnchorFile
from lifelong_core.store.access.audit_log import REFUSED_ACCESS, REFUSED_LOGIN, AuditLog, Refusals
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import UnavailableError
from lifelong_service.clients import authentication
from lifelong_service.clients.refused_requests import (
    MINUTES_PER_HOUR,
    NAMED_PER_HOUR,
    NAMED_PER_MINUTE,
    OTHERS,
    RefusalCounter,
)
from lifelong_service.guard.access import client_address
from tests.unit.service.conftest import Service, png
from tests.unit.service.consoles import OURS, Console
from tests.unit.service.waiting import eventually

NOON = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.moment = NOON

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()

    def advance(self, **time: float) -> None:
        self.moment += timedelta(**time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counter(clock: Clock) -> RefusalCounter:
    return RefusalCounter(clock.now, clock.monotonic)


def refuse(
    counter: RefusalCounter, source: str = "192.0.2.1", action: str = REFUSED_ACCESS, **changes: str
) -> None:
    values = {"actor": "anonymous", "reason": "unauthenticated", "request": "GET /v1/admin/tasks"} | changes
    counter.count(action, source=source, **values)


def written(counter: RefusalCounter, audit: AuditLog, **options: bool) -> list[AuditEntry]:
    before = audit.newest()
    counter.write(audit, **options)
    return audit.list(5000)[: -before.sequence if before else None][::-1]


def test_the_refusals_of_a_minute_are_one_entry(counter: RefusalCounter, clock: Clock, store: Store) -> None:
    for _ in range(7):
        refuse(counter)
        clock.advance(seconds=2)
    refuse(counter, request="POST /v1/predict")
    assert written(counter, store.audit) == []
    clock.advance(seconds=20)
    (entry,) = written(counter, store.audit)
    assert (entry.action, entry.actor, entry.source) == (REFUSED_ACCESS, "anonymous", "192.0.2.1")
    assert entry.subject == "GET /v1/admin/tasks, POST /v1/predict"
    assert entry.details == {
        "reason": "unauthenticated",
        "count": 8,
        "first_at": "2026-05-01T12:00:30+00:00",
        "last_at": "2026-05-01T12:00:44+00:00",
    }
    assert written(counter, store.audit) == []


def test_address_token_reason_action_and_minute_are_told_apart(
    counter: RefusalCounter, clock: Clock, store: Store
) -> None:
    refuse(counter)
    refuse(counter, source="192.0.2.2")
    refuse(counter, actor="gateway")
    refuse(counter, reason="forbidden")
    refuse(counter, action=REFUSED_LOGIN)
    clock.advance(minutes=1)
    refuse(counter)
    assert [entry.details["count"] for entry in written(counter, store.audit, unfinished=True)] == [1] * 6


def test_an_entry_names_few_requests(counter: RefusalCounter, store: Store) -> None:
    for index in range(9):
        refuse(counter, request=f"GET /v1/{index}" + "x" * 70)
    (entry,) = written(counter, store.audit, unfinished=True)
    assert entry.subject.startswith("GET /v1/0")
    assert entry.subject.endswith(", others")
    assert (entry.details["count"], len(entry.subject.split(", "))) == (9, 4)


def test_a_flood_from_many_addresses_is_few_entries(
    counter: RefusalCounter, clock: Clock, store: Store
) -> None:
    for index in range(3_000):
        refuse(counter, source=f"10.{index // 65536}.{index // 256 % 256}.{index % 256}")
    entries = written(counter, store.audit, unfinished=True)
    assert len(entries) == NAMED_PER_MINUTE + 1
    assert entries[-1].source == OTHERS
    assert sum(entry.details["count"] for entry in entries) == 3_000
    # For hours: those that name an address are used up, and one a minute sums up the rest.
    for minute in range(180):
        clock.advance(minutes=1)
        for index in range(30):
            refuse(counter, source=f"10.{minute}.0.{index}")
    entries += written(counter, store.audit, unfinished=True)
    assert sum(entry.details["count"] for entry in entries) == 3_000 + 180 * 30
    assert len([one for one in entries if one.source != OTHERS]) <= 4 * NAMED_PER_HOUR
    assert len([one for one in entries if one.source == OTHERS]) <= 4 * (MINUTES_PER_HOUR + 1)


def test_what_goes_on_has_one_entry_for_the_rest_of_the_hour(
    counter: RefusalCounter, clock: Clock, store: Store
) -> None:
    entries: list[AuditEntry] = []
    for _ in range(120):
        refuse(counter)
        refuse(counter, source="192.0.2.2")
        clock.advance(minutes=1)
        entries += written(counter, store.audit)
    entries += written(counter, store.audit, unfinished=True)
    of_one = [entry.details["count"] for entry in entries if entry.source == "192.0.2.1"]
    assert of_one == [1] * MINUTES_PER_HOUR + [55] + [1] * MINUTES_PER_HOUR + [55]
    assert len(entries) == 2 * len(of_one)


def test_an_ipv6_network_counts_as_one_address(counter: RefusalCounter, store: Store) -> None:
    for index in range(1, 200):
        refuse(counter, source=f"2001:db8:0:7::{index:x}")
    refuse(counter, source="::1")
    sources = [entry.source for entry in written(counter, store.audit, unfinished=True)]
    assert sources == ["2001:db8:0:7::/64", "::/64"]


class Away:
    """An audit log whose database does not answer."""

    def note_refusals(self, _: object) -> None:
        raise UnavailableError("the database is away.")


def test_refusals_wait_for_the_database_and_take_little_memory(
    counter: RefusalCounter, clock: Clock, store: Store
) -> None:
    away: Any = Away()
    tracemalloc.start()
    for minute in range(3000):
        for index in range(3):
            refuse(counter, source=f"10.{minute % 256}.{index}.1")
        clock.advance(minutes=1)
        if minute % 500 == 0:
            with pytest.raises(UnavailableError):
                counter.write(away)
    assert tracemalloc.get_traced_memory()[0] < 4_000_000
    tracemalloc.stop()
    entries = written(counter, store.audit)
    assert sum(entry.details["count"] for entry in entries) == 9000
    assert len(entries) < 1200


def test_what_was_written_before_the_database_failed_is_not_written_again(
    counter: RefusalCounter, clock: Clock, store: Store
) -> None:
    class Failing:
        calls = 0

        def note_refusals(self, refusals: list[Refusals]) -> None:
            self.calls += 1
            if self.calls == 3:
                raise UnavailableError("the database is away.")
            store.audit.note_refusals(refusals)

    for _ in range(3):
        for index in range(15):
            refuse(counter, source=f"10.0.0.{index}")
        clock.advance(minutes=1)
    failing: Any = Failing()
    with pytest.raises(UnavailableError):
        counter.write(failing)
    assert len(store.audit.list(kind="refusals")) == 40
    counter.write(store.audit)
    entries = store.audit.list(kind="refusals")
    assert [entry.details["count"] for entry in entries] == [1] * 45


def test_requests_that_come_while_the_database_fails_are_not_lost(
    counter: RefusalCounter, clock: Clock, store: Store
) -> None:
    class Failing:
        def note_refusals(self, _: object) -> None:
            refuse(counter)
            raise UnavailableError("the database is away.")

    failing: Any = Failing()
    refuse(counter)
    with pytest.raises(UnavailableError):
        counter.write(failing, unfinished=True)
    (entry,) = written(counter, store.audit, unfinished=True)
    assert entry.details["count"] == 2


def test_the_source_is_an_address() -> None:
    for client, source in (
        (("192.0.2.7", 1234), "192.0.2.7"),
        (("::ffff:192.0.2.7", 1), "192.0.2.7"),
        (("2001:DB8::1", 1), "2001:db8::1"),
        (("<script>", 0), "unknown"),
        (None, "local"),
    ):
        assert client_address(Request({"type": "http", "client": client})) == source


def refusals_of(service: Service) -> list[AuditEntry]:
    service.worker.refusals.write(service.store.audit, unfinished=True)
    return service.store.audit.list(kind="refusals")[::-1]


def test_refused_requests_are_audited_with_what_is_known_of_the_token(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "PATIENCE_SECONDS", 60)  # the machine may be busy
    _, ended = service.store.tokens.create("ended", [Scope.ADMIN], actor="test")
    service.store.tokens.revoke("ended", actor="test")
    # A worker that has read the token before it was revoked accepts it until its next poll.
    revision = service.store.registry().revision
    eventually(lambda: service.worker.serving.revision == revision)
    for secret in ("ll_wrong", ended, service.secrets["predict"]):
        for _ in range(2):
            service.client.get("/v1/admin/tasks", headers={"Authorization": f"Bearer {secret}"})
    service.client.get("/v1/admin/tasks", headers={"Authorization": None})
    found = refusals_of(service)
    assert [(one.actor, one.details["reason"], one.details["count"]) for one in found] == [
        ("anonymous", "unauthenticated", 3),
        ("ended", "unauthenticated", 2),
        ("predict-token", "forbidden", 2),
    ]
    assert {(one.action, one.source, one.subject) for one in found} == {
        (REFUSED_ACCESS, "127.0.0.1", "GET /v1/admin/tasks")
    }
    assert "ll_wrong" not in str(found)
    assert ended not in str(found)


def test_a_bound_token_that_leaves_its_environment_is_audited(service: Service) -> None:
    _, secret = service.store.tokens.create(
        "clinic-a", [Scope.PREDICT], environments=["clinic-a"], actor="test"
    )
    answer = service.client.post(
        "/v1/predict?environment=clinic-b", content=png(), headers={"Authorization": f"Bearer {secret}"}
    )
    assert answer.status_code == 403
    (entry,) = refusals_of(service)
    assert (entry.actor, entry.subject) == ("clinic-a", "POST /v1/predict")


def test_failed_logins_are_audited_and_visits_without_a_token_are_not(service: Service) -> None:
    for secret in ("", "ll_wrong", service.secrets["predict"]):
        service.client.post("/console/login", data={"token": secret}, headers=OURS)
    service.client.get("/console")
    service.client.post("/console/interviews", headers={"Sec-Fetch-Site": "cross-site"})
    found = refusals_of(service)
    assert [(one.action, one.actor, one.details["reason"]) for one in found] == [
        (REFUSED_LOGIN, "anonymous", "unauthenticated"),
        (REFUSED_LOGIN, "predict-token", "forbidden"),
        (REFUSED_ACCESS, "anonymous", "forbidden"),
    ]


def test_refused_uploads_are_audited_once(service: Service) -> None:
    service.client.post("/v1/admin/models", json={"task": "nothing", "name": "m", "kind": "external"})
    service.client.post(
        "/v1/admin/models/linear/calibration-sets", json={"logits": [[1, 2, 3]], "labels": [7]}
    )
    found = refusals_of(service)
    assert [(one.action, one.actor, one.subject) for one in found] == [
        ("uploads.refuse", "admin-token", "POST /v1/admin/models"),
        ("uploads.refuse", "admin-token", "POST /v1/admin/models/{reference}/calibration-sets"),
    ]
    assert "nothing" in found[0].details["message"]


def test_a_refused_graph_has_one_entry(service: Service) -> None:
    document = '{"task": "skin", "name": "broken"}'
    answer = service.client.post(
        "/v1/admin/models", files={"onnx": ("m.onnx", b"no graph")}, data={"document": document}
    )
    assert answer.status_code == 422
    (entry,) = refusals_of(service)
    assert (entry.action, entry.source) == ("models.refuse", "127.0.0.1")


def test_changes_name_their_source(service: Service) -> None:
    service.client.post("/v1/admin/environments", json={"name": "clinic-a"})
    service.client.post("/v1/predict?environment=clinic-b", content=png())
    entries = service.client.get("/v1/admin/audit?action=environments&kind=changes").json()["audit"]
    assert [(one["subject"], one["source"]) for one in entries] == [
        ("clinic-b", "127.0.0.1"),
        ("clinic-a", "127.0.0.1"),
    ]
    assert service.client.get("/v1/admin/audit?kind=other").status_code == 422
    assert service.store.audit.list(action="tokens")[0].source == "local"


def test_the_worker_keeps_the_anchor_of_the_newest_entry(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lifelong_core")
    service.client.post("/v1/admin/environments", json={"name": "clinic-a"})
    newest = service.store.audit.newest()
    keeper = AnchorFile(service.settings.audit_anchor_file)
    eventually(lambda: keeper.read() == newest)
    assert keeper.path.stat().st_mode & 0o777 == 0o600
    eventually(
        lambda: {"anchor": str(newest)} in [getattr(record, "details", None) for record in caplog.records]
    )


def degraded(service: Service) -> str:
    return " ".join(service.client.get("/readyz").json()["degraded"])


def test_a_tail_that_was_cut_off_is_said_where_people_look(service: Service) -> None:
    newest = service.store.audit.newest()
    eventually(lambda: AnchorFile(service.settings.audit_anchor_file).read() == newest)
    assert degraded(service) == ""
    with service.store.database.write() as connection:
        connection.execute(sa.delete(tables.audit).where(tables.audit.c.id > 5))
    service.store.environments.add("clinic-a", actor="test")
    eventually(lambda: "audit.anchor: the audit log is not what it was" in degraded(service))
    console = Console(service, scope="read")
    assert "the audit log is not what it was" in console.get("/console/audit").text
    # The file is the evidence.
    assert AnchorFile(service.settings.audit_anchor_file).read() == newest
    service.settings.audit_anchor_file.unlink()
    service.store.environments.add("clinic-b", actor="test")
    eventually(lambda: degraded(service) == "")


def test_the_page_of_the_audit_log(service: Service) -> None:
    console = Console(service, scope="read")
    service.client.get("/v1/admin/tasks", headers={"Authorization": "Bearer <b>wrong</b>"})
    service.store.environments.add("clinic-a", actor="<i>ann</i>")
    service.store.audit.note_refusals(
        [
            Refusals(REFUSED_ACCESS, "anonymous", f"10.0.0.{index}", "GET /v1/x", {"count": 1})
            for index in range(120)
        ]
    )
    shown = console.get("/console/audit").text
    assert shown.count("<tr>") == 101
    assert "10.0.0.119" in shown
    older = re.search(r'href="(/console/audit\?before=\d+)"', shown)
    shown = console.get(older[1]).text
    assert "&lt;i&gt;ann&lt;/i&gt;" in shown
    assert "10.0.0.19" in shown
    assert "Older entries" not in shown
    assert "10.0.0." not in console.get("/console/audit?kind=changes").text
    assert "clinic-a" not in console.get("/console/audit?kind=refusals").text
    assert console.get("/console/audit?kind=x").status_code == 404
    assert "There is no older entry" in console.get("/console/audit?before=1").text
    by_ann = console.get("/console/audit?actor=<i>ann</i>&action=environments").text
    assert (by_ann.count("<tr>"), 'value="&lt;i&gt;ann&lt;/i&gt;"' in by_ann) == (2, True)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert "10.0.0.119" in console.get(f"/console/audit?since={today}&until={today}").text
    assert "There is no entry of these" in console.get("/console/audit?until=2026-01-01&actor=ann").text
    refused = console.get("/console/audit?since=yesterday")
    assert (refused.status_code, "since: Expected a day" in refused.text) == (422, True)
    (older,) = re.findall(r'href="(.*)" rel="next"', console.get("/console/audit?kind=refusals").text)
    assert "kind=refusals" in older
