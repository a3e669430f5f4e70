"""Half-open connections: other clients can still connect."""

import time

from tests.attacks.attack import Outcome, Scale
from tests.attacks.slow_sockets import SlowSockets
from tests.attacks.target import Target

UNFINISHED_HEADS = 2_300
SLOW_BODIES = 200
ATTACKER = "127.0.0.2"
"""Address of the attacker. Limits are per address: other clients of this address may have to connect again."""
_HEAD = b"GET /livez HTTP/1.1\r\nHost: service\r\nX-Slow: "
_BODY = b"POST /v1/predict HTTP/1.1\r\nHost: service\r\nContent-Length: 100000\r\nAuthorization: Bearer %s\r\n\r\n"


def half_open(target: Target, scale: Scale) -> Outcome:
    """2,300 connections of another address that send one byte of a header per second, then 200 with bytes of a body."""
    outcome = Outcome()
    token = (target.service.token or "").encode()
    with target.watched() as seen:
        for start, number in ((_HEAD, UNFINISHED_HEADS), (_BODY % token, SLOW_BODIES)):
            with SlowSockets(target.service.port, [(start, b"a")], number, [ATTACKER]).opened():
                time.sleep(scale.seconds)
    outcome.expect_in_time("/livez p99, s", seen.livez.percentile(99), below=1)
    outcome.expect_in_time("/livez slowest, s", max(seen.livez.seconds), below=3)
    outcome.expect("/livez failures", len(seen.livez.failures), below=1)
    outcome.expect_in_time("innocent p99, s", seen.predictions.percentile(99), below=1)
    outcome.expect("innocent failures", len(seen.predictions.failures), below=1)
    outcome.expect("memory growth, MB", seen.growth_megabytes, below=200)
    outcome.figures["/livez requests"] = len(seen.livez.seconds)
    return outcome
