"""Made-up session cookies: the console still answers a session, and a new one."""

import multiprocessing
import time

from tests.attacks.attack import Outcome, Scale
from tests.attacks.login_flood import log_in
from tests.attacks.open_loop import send_in_turn
from tests.attacks.target import Target

CLIENTS = 200
_REQUEST = b"GET /console HTTP/1.1\r\nHost: a\r\nCookie: lifelong_console=%b\r\n\r\n" % (b"x" * 43)


def made_up_sessions(target: Target, scale: Scale) -> Outcome:
    """200 connections of one address, each with a made-up cookie in one request after the other."""
    outcome = Outcome()
    cookie = log_in(target)
    attack = multiprocessing.get_context("spawn").Process(
        target=_attack, args=(target.service.port, scale.seconds + 10), daemon=True
    )
    attack.start()
    try:
        with target.watched(cookie) as seen:
            time.sleep(scale.seconds)
            later = log_in(target)
        outcome.expect("logins refused", not later, below=1)
    finally:
        attack.kill()
        attack.join()
    outcome.expect("console failures", len(seen.console.failures), below=1)
    outcome.expect_in_time("console p99, s", seen.console.percentile(99), below=0.25)
    outcome.expect_in_time("innocent p99, s", seen.predictions.percentile(99), below=0.25)
    outcome.expect("innocent failures", len(seen.predictions.failures), below=1)
    return outcome


def _attack(port: int, seconds: float) -> None:
    send_in_turn(port, _REQUEST, clients=CLIENTS, seconds=seconds, address="127.0.0.2")
