"""The service with two real workers while its database is locked: every request is answered and logged in the end."""

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.spool import Spool
from tests import tools
from tests.databases import locked
from tests.integration.installation import Installation, install
from tests.integration.processes import Connection, Load, Reply, Service, eventually, running_service

OUTAGE_SECONDS = 3.0
GRACE_SECONDS = 5.0
MANY_ENVIRONMENTS = {"maximum_new_environments_per_hour": 1000}
"""The load makes dozens of them."""


def test_a_locked_database_costs_no_answer_and_no_row(tmp_path: Path) -> None:
    installation = install(tmp_path)
    with running_service(tmp_path, installation.token, **MANY_ENVIRONMENTS) as service:
        service.wait_for_workers()
        with load(service) as running:
            with outage(installation):
                time.sleep(OUTAGE_SECONDS)
                degraded = service.send("GET", "/readyz")
                assert (degraded.status, bool(degraded.body["degraded"])) == (200, True)
                assert degraded.body["spool"]["predictions"] > 0
            eventually(lambda: not service.send("GET", "/readyz").body["degraded"], "the delivery")
        assert running.faults == []
        assert {reply.status for reply in running.results} == {200}
        assert logged(installation) == ids(running.results)

        # It is told to stop while the database is away, and a client is in the middle of its request.
        with outage(installation):
            replies = [predict(service) for _ in range(5)]
            with half_a_request(service, installation) as rest:
                began = time.monotonic()
                service.process.terminate()
                eventually(lambda: service.send("GET", "/readyz").status == 503, "a worker that is not ready")
                replies.append(predict(service))
                assert b" 503 " in rest()
            assert service.process.wait(60) == 0, service.last_words()
            assert time.monotonic() - began < GRACE_SECONDS or not tools.has_deadlines()
        assert {reply.status for reply in replies} == {200}
        assert " 500 " not in service.last_words()
    assert ids(replies) <= in_spool(installation) | logged(installation)


numbers = itertools.count()


def load(service: Service) -> Load:
    """Requests with ids, groups and environments that nobody has seen."""

    def request(connection: Connection) -> Reply:
        number = next(numbers)
        logits = np.random.default_rng(number).normal(size=(2, 3)).round(3).tolist()
        document = {"logits": logits, "request_id": f"r{number}", "environment": f"e{number // 100 % 50}"}
        return connection.post_json("/v1/logits", document | {"group": f"g{number % 7}"})

    return Load(service, request, threads=4)


@contextmanager
def outage(installation: Installation) -> Iterator[None]:
    with locked(installation.settings.data_directory / "lifelong.db"):
        yield


def predict(service: Service) -> Reply:
    with service.connect() as connection:
        return connection.post_json("/v1/logits", {"logits": [[1, 2, 3]]})


@contextmanager
def half_a_request(service: Service, installation: Installation) -> Iterator[Callable[[], bytes]]:
    """A client that does not send the rest; gives what it was answered."""
    head = (
        f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {installation.token}\r\n"
        "Content-Type: image/png\r\nContent-Length: 1000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as client:
        client.sendall(head.encode() + b"half")
        time.sleep(0.2)
        yield lambda: client.recv(1000)


def ids(replies: list[Reply]) -> set[UUID]:
    return {UUID(row["prediction_id"]) for reply in replies for row in reply.body["predictions"]}


def logged(installation: Installation) -> set[UUID]:
    with installation.store() as store:
        rows: list[Any] = store.predictions.read_since(None, limit=1_000_000)[0]
    found = {row.id for row in rows}
    assert len(found) == len(rows)
    return found


def in_spool(installation: Installation) -> set[UUID]:
    """What waits there; it is taken out."""
    spool = Spool(installation.settings.resolved_spool_directory, maximum_bytes=10**9)
    found: list[LogEntry] = []
    while spool.deliver(found.extend):
        pass
    return {prediction.id for entry in found for prediction in entry.predictions}
