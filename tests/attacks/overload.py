"""Ten times the capacity of the service from one token: the throughput stays, and other tokens are served."""

import time

import numpy as np

from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import Scope, register_calibration
from lifelong_core.values.preprocessing import Preprocessing
from tests import tools
from tests.attacks.attack import QUICK, Outcome, Scale
from tests.attacks.open_loop import Sent, send_at_rate, send_in_turn, statuses
from tests.attacks.target import Target
from tests.integration.installation import image
from tests.unit.service import onnx_graphs

TIMES = 10


def overload(target: Target, scale: Scale) -> Outcome:
    """Ten times the capacity of a slow model for some seconds, while another token continues with a few requests."""
    greedy = _prepare(target)
    request = _request(greedy)
    port = target.service.port
    measured = scale.seconds / 2 if scale is QUICK else 10
    send_in_turn(port, request, clients=8, seconds=1)

    def capacity_now() -> float:
        with target.watched():  # normal requests and observation take the same share as in the attack
            sent = send_in_turn(port, request, clients=8, seconds=measured)
        return sum(one.status == 200 for one in sent) / measured

    capacity = capacity_now()
    outcome = Outcome()
    with target.watched() as seen:
        began = time.monotonic()
        sent = send_at_rate(port, request, rate=TIMES * capacity, seconds=scale.seconds)
        lasted = time.monotonic() - began
    # The load by other work on the machine varies.
    mean_capacity = (capacity + capacity_now()) / 2
    answered = _seconds(sent, 200)
    refused = _seconds(sent, 503)
    outcome.figures |= {f"status {status}": number for status, number in sorted(statuses(sent).items())}
    goodput = len(answered) / lasted
    outcome.expect("answered none", not answered, below=1)
    outcome.figures |= {
        "capacity, requests/s": round(mean_capacity, 1),
        "goodput, requests/s": round(goodput, 1),
    }
    outcome.expect_in_time("lost share of the capacity", 1 - goodput / mean_capacity, below=0.2)
    outcome.expect_in_time("refusal p50, s", _percentile(refused, 50), below=0.05)
    outcome.expect_in_time("refusal p99, s", _percentile(refused, 99), below=0.05)
    outcome.figures["success p50, s"] = round(_percentile(answered, 50), 4)
    outcome.expect_in_time("success p99, s", _percentile(answered, 99), below=2)
    outcome.expect("neither answered nor refused", len(sent) - len(answered) - len(refused), below=1)
    outcome.expect(
        "failed share of another token",
        len(seen.predictions.failures) / max(1, len(seen.predictions.seconds)),
        below=0.05 if tools.has_deadlines() else 0.5,
    )
    for failure in sorted(set(seen.predictions.failures))[:3]:
        outcome.missed += [f"another token got {failure}"] if not failure.startswith("503") else []
    outcome.expect_in_time("another token p99, s", seen.predictions.percentile(99), below=2)
    outcome.expect_in_time("/livez p99, s", seen.livez.percentile(99), below=0.1)
    return outcome


def _prepare(target: Target) -> str:
    """Register an additional slow model, and wait until it answers; return the secret of a token for it."""
    grey = Preprocessing.model_validate({"colour": "grey", "mean": [0.5], "standard_deviation": [0.5]})
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(3), 60)
    logits = (np.eye(3)[labels] * 2 + rng.normal(size=(180, 3))).astype(np.float32)
    with target.installation.store() as store:
        model = store.models.add(
            "skin", "slow", kind="onnx", onnx=onnx_graphs.slow(1000), preprocessing=grey, actor="test"
        )
        register_calibration(store, model.reference, LabeledLogits(logits, labels), actor="test")
        _, secret = store.tokens.create("greedy", [Scope.PREDICT], actor="test")
    end = time.monotonic() + 30
    workers: set[str] = set()
    while len(workers) < 2:
        reply = target.service.send("POST", "/v1/predict?model=slow", image(edge=4), Content_Type="image/png")
        if reply.status == 200:
            workers.add(reply.worker)
        assert time.monotonic() < end, reply.content
    return secret


def _request(secret: str) -> bytes:
    body = image(edge=4)
    head = (
        "POST /v1/predict?model=slow HTTP/1.1\r\nHost: test\r\nContent-Type: image/png\r\n"
        f"Authorization: Bearer {secret}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _seconds(sent: list[Sent], status: int) -> list[float]:
    return [one.seconds for one in sent if one.status == status]


def _percentile(seconds: list[float], share: float) -> float:
    return float(np.percentile(seconds, share)) if seconds else 0.0
