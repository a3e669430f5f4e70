"""Costly images: other requests are not slowed down."""

import time

from tests import tools
from tests.attacks.attack import Outcome, Scale, flood
from tests.attacks.images import CORPUS
from tests.attacks.target import Target
from tests.integration.processes import Reply


def image_stall(target: Target, scale: Scale) -> Outcome:
    """A stream of small images that take seconds and gigabytes to decode.

    Each is first sent alone, then several clients send all of them at once, while others send ordinary images.
    """
    outcome = Outcome()
    corpus = {name: make() for name, make in CORPUS.items()}
    corpus = {name: data for name, data in corpus.items() if len(data) <= 20_000_000}
    images = list(corpus.values())

    def send(data: bytes) -> Reply:
        return target.service.send("POST", "/v1/predict", data, Content_Type="application/octet-stream")

    with target.watched() as seen:
        slowest = 0.0
        for name, data in corpus.items():
            began = time.monotonic()
            reply = send(data)
            slowest = max(slowest, time.monotonic() - began)
            is_busy = reply.status == 503 and not tools.has_deadlines()  # then it says so, and may
            if reply.status >= 500 and not is_busy:
                outcome.missed.append(f"{name}: {reply.status} {reply.content[:200]!r}")
        with flood(
            scale.clients, scale.seconds, lambda client, turn: send(images[(client * 5 + turn) % len(images)])
        ):
            pass
    outcome.expect_in_time("worst single image, s", slowest, below=2.5)
    outcome.expect_in_time("innocent p99, s", seen.predictions.percentile(99), below=0.25)
    outcome.expect("innocent failures", len(seen.predictions.failures), below=1)
    outcome.expect_in_time("/livez p99, s", seen.livez.percentile(99), below=0.1)
    # The goal is 200 for a worker: 209 to 222 were measured. Its decoding process takes 33 MB, and up to 117 MB more
    # for 16 megapixels with an alpha channel; waiting bodies take the rest.
    outcome.expect("memory growth of a worker, MB", seen.worker_growth_megabytes, below=260)
    outcome.expect("memory growth, MB", seen.growth_megabytes, below=420)
    outcome.figures["innocent requests"] = len(seen.predictions.seconds)
    return outcome
