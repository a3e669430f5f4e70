"""Wrong logins to the console at full speed: few are verified, and a valid token still logs in."""

import http.client
import time
from collections import Counter
from urllib.parse import urlencode

from tests.attacks.attack import Outcome, Scale, flood
from tests.attacks.target import Target

ATTACKER = "127.0.0.2"
WORKERS = 2
ALLOWED_PER_MINUTE = 10
"""Permitted failed logins of one address per minute in each worker."""
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


def login_flood(target: Target, scale: Scale) -> Outcome:
    """Wrong tokens from one address, while another address logs in; later a copy of its cookie is tried."""
    outcome, statuses = Outcome(), Counter[int]()
    port, token = target.service.port, target.service.token or ""

    def send(client: int, turn: int) -> None:
        try:
            statuses[_send(port, "/console/login", {"token": "ll_wrong"}, address=ATTACKER).status] += 1
        except (OSError, http.client.HTTPException):
            statuses[0] += 1

    with target.watched() as seen, flood(2 * scale.clients, scale.seconds, send):
        time.sleep(scale.seconds / 2)
        answer = _send(port, "/console/login", {"token": token})
    cookie = (answer.headers["Set-Cookie"] or "").partition(";")[0]
    outcome.expect("honest logins refused", answer.status != 303, below=1)
    looked_at = statuses.total() - statuses[429]
    allowed = WORKERS * ALLOWED_PER_MINUTE * (1 + scale.seconds / 60)
    outcome.expect("wrong logins looked at", looked_at, below=allowed + WORKERS)
    outcome.figures["wrong logins"] = statuses.total()
    outcome.expect("the cookie is the token", token in cookie, below=1)
    _send(port, "/console/logout", {}, Cookie=cookie)
    copied = _send(port, "/console/sessions/end", {}, Cookie=cookie)
    outcome.expect(
        "a copy works after the logout", "/console/login?" not in (copied.headers["Location"] or ""), below=1
    )
    outcome.expect_in_time("innocent p99, s", seen.predictions.percentile(99), below=1)
    outcome.expect("innocent failures", len(seen.predictions.failures), below=1)
    outcome.expect_in_time("/livez p99, s", seen.livez.percentile(99), below=1)
    outcome.expect("memory growth, MB", seen.growth_megabytes, below=100)
    return outcome


def log_in(target: Target) -> str:
    """Cookie of a new session of the console."""
    answer = _send(target.service.port, "/console/login", {"token": target.service.token or ""})
    return (answer.headers["Set-Cookie"] or "").partition(";")[0]


def _send(
    port: int, path: str, form: dict[str, str], *, address: str = "127.0.0.1", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(address, 0))
    try:
        connection.request("POST", path, urlencode(form), _HEADERS | headers)
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()
