"""Connections that wait for their client: bodies of one byte a second, and silence."""

import time

from lifelong_core.store import Scope
from tests.attacks.attack import QUICK, Outcome, Scale
from tests.attacks.login_flood import log_in
from tests.attacks.slow_sockets import SlowSockets
from tests.attacks.target import Observation, Target

SOCKETS = 2_000
"""As many as both workers keep."""
_POST = b"POST %b HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer %b\r\n"
_LENGTH = b"Content-Length: 100000\r\n\r\n"
_PART = b'--x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'


def slow_bodies(target: Target, scale: Scale) -> Outcome:
    """2,000 connections, silent or with a byte of a body per second, from 2, 5 and 20 addresses."""
    outcome = Outcome()
    kinds = _kinds(_greedy(target))
    if scale is QUICK:
        cases = [("all kinds", list(kinds.values()), 20)]
    else:
        cases = [(kind, [start], count) for kind, start in kinds.items() for count in (2, 5, 20)]
    cookie = log_in(target)
    for kind, starts, count in cases:
        sockets = SlowSockets(target.service.port, starts, SOCKETS, _addresses(count))
        with target.watched(cookie) as seen, sockets.opened():
            time.sleep(scale.seconds if scale is QUICK else 20)
        _expect(outcome, seen, f"{kind}, {count} addresses: ")
    return outcome


def _addresses(count: int) -> list[str]:
    return [f"127.0.1.{number}" for number in range(1, count + 1)]


def _greedy(target: Target) -> bytes:
    with target.installation.store() as store:
        _, secret = store.tokens.create("slow", [Scope.PREDICT, Scope.READ], actor="test")
    time.sleep(target.installation.settings.registry_poll_seconds + 1)
    return secret.encode()


def _kinds(token: bytes) -> dict[str, tuple[bytes, bytes]]:
    """First bytes of a connection, and what it sends every second, by the kind of the attack."""
    predict = _POST % (b"/v1/predict", token)
    login = _POST % (b"/console/login", b"") + b"Sec-Fetch-Site: same-origin\r\n"
    return {
        "logins": (login + _LENGTH, b"a"),
        "one token": (predict + b"Content-Type: image/png\r\n" + _LENGTH, b"a"),
        "chunks": (predict + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
        "multipart": (predict + b"Content-Type: multipart/form-data; boundary=x\r\n" + _LENGTH + _PART, b"a"),
        "silence": (b"", b""),
    }


def _expect(outcome: Outcome, seen: Observation, case: str) -> None:
    witnesses = {
        "prediction": seen.predictions,
        "/livez": seen.livez,
        "/readyz": seen.readyz,
        "console": seen.console,
    }
    for name, witness in witnesses.items():
        outcome.figures[f"{case}{name} p50, s"] = round(witness.percentile(50), 4)
        outcome.expect_in_time(f"{case}{name} p99, s", witness.percentile(99), below=0.25)
        outcome.expect(f"{case}{name} failures", len(witness.failures), below=1)
    outcome.expect(f"{case}memory growth, MB", seen.growth_megabytes, below=200)
