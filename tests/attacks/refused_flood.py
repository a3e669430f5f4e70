"""A flood of requests with wrong tokens: each is counted, few entries are written."""

import http.client
import secrets
from contextlib import suppress
from pathlib import Path

from lifelong_core.store import Store
from tests.attacks.attack import Outcome, Scale, flood
from tests.attacks.target import MEGABYTE, Target

ADDRESSES = 200
REQUESTS_PER_CONNECTION = 20
ENTRIES_PER_MINUTE = 21
"""Largest number of entries that one worker writes per minute for one reason of refusal."""
WORKERS = 2


def refused_flood(target: Target, scale: Scale) -> Outcome:
    """Wrong tokens from 200 addresses, then a check of the audit log."""
    outcome = Outcome()
    secret = f"ll_{secrets.token_urlsafe(32)}"
    settings = target.installation.settings
    folder = settings.data_directory
    before = _size(folder)
    answers: list[int] = []
    with target.watched() as seen:
        port = target.service.port
        with flood(
            scale.clients,
            scale.seconds,
            lambda client, turn: _send(port, secret, client + turn * scale.clients, answers),
        ):
            pass
    target.service.terminate()
    with Store.from_settings(settings) as store:
        entries = store.audit.list(100_000, kind="refusals")
        faults = store.audit.verify().faults
    counted = sum(entry.details["count"] for entry in entries)
    minutes = 2 + scale.seconds // 60
    outcome.expect("audit entries", len(entries), below=WORKERS * ENTRIES_PER_MINUTE * minutes + 1)
    outcome.expect("refusals that are not counted", abs(answers.count(401) - counted), below=1)
    outcome.expect("faults of the audit log", len(faults), below=1)
    outcome.expect("files that hold the token", _holding(folder, secret), below=1)
    outcome.expect("growth of the data directory, MB", (_size(folder) - before) / MEGABYTE, below=10)
    outcome.expect_in_time("innocent p99, s", seen.predictions.percentile(99), below=1)
    outcome.expect("innocent failures", len(seen.predictions.failures), below=1)
    outcome.figures["refused requests"] = len(answers)
    return outcome


def _send(port: int, secret: str, number: int, answers: list[int]) -> None:
    """Send some requests on a connection from one of the addresses."""
    source = (f"127.0.1.{number % ADDRESSES + 1}", 0)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10, source_address=source)
    with suppress(OSError, http.client.HTTPException):
        for _ in range(REQUESTS_PER_CONNECTION):
            connection.request("GET", "/v1/admin/tasks", headers={"Authorization": f"Bearer {secret}"})
            answer = connection.getresponse()
            answer.read()
            answers.append(answer.status)
    connection.close()


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _holding(folder: Path, secret: str) -> int:
    return sum(secret.encode() in file.read_bytes() for file in folder.rglob("*") if file.is_file())
