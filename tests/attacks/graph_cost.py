"""Images that make a stored graph costly, for graphs that the check of uploads did not see."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from lifelong_core.store import Store, register_calibration
from lifelong_core.values.preprocessing import Preprocessing
from tests.attacks.attack import Outcome, Scale
from tests.attacks.graphs import HostileGraph, branch_by_pixels, hanging_by_pixels
from tests.attacks.target import Target
from tests.integration.installation import labelled_logits, plain_image
from tests.integration.processes import Reply, eventually, lives

LIMITS: Final[Mapping[str, object]] = {
    "request_timeout_seconds": 1,
    "maximum_graph_hangs": 1,
}
"""Settings that make the attack short."""
_GRAPHS: Final[Mapping[str, Callable[[], HostileGraph]]] = {
    "branch": branch_by_pixels,
    "hanging": hanging_by_pixels,
}
_PLAIN = Preprocessing.model_validate(
    {"colour": "grey", "mean": [0.0], "standard_deviation": [1.0], "resize": {"height": 4, "width": 4}}
)


def graph_cost(target: Target, _: Scale) -> Outcome:
    """White images for graphs that then take gigabytes, or do not end, while other clients send ordinary images.

    The graphs come past the check, as one would whose cost it does not know.
    """
    outcome = Outcome()
    with target.installation.store() as store:
        for name, make in _GRAPHS.items():
            _add(store, name, make().content)
    both = len(target.service.workers())
    for name in _GRAPHS:
        eventually(
            lambda name=name: len(_serving(target, name)) == both, f"{name} to be served by both workers"
        )
    with target.watched() as seen:
        workers = target.service.workers()
        outcome.expect("branch, status other than 422", _sent(target, "branch", 255).status != 422, below=1)
        outcome.expect("workers lost to memory", sum(not lives(one) for one in workers), below=1)
        began = time.monotonic()
        first = _sent(target, "hanging", 255)
        outcome.expect("hanging, status other than 503", first.status != 503, below=1)
        outcome.expect("hanging, refused before it ran", b"being loaded" in first.content, below=1)
        outcome.expect_in_time("hanging, s", first.received_at - first.sent_at, below=6)
        eventually(lambda: not all(map(lives, workers)), "the hanging worker to end")
        outcome.figures["until the hanging worker has ended, s"] = round(time.monotonic() - began, 1)
        outcome.expect("workers lost", sum(not lives(one) for one in workers), below=2)
        again = _sent(target, "hanging", 255)
        outcome.expect("again, not refused", b"has hung 1 workers" not in again.content, below=1)
    outcome.expect("memory growth of a worker, MB", seen.worker_growth_megabytes, below=200)
    failures = [failure for failure in seen.predictions.failures if not failure.startswith("503")]
    outcome.expect("innocent failures other than 503", len(failures), below=1)
    outcome.missed += failures[:3]
    outcome.figures["innocent requests"] = len(seen.predictions.seconds)
    outcome.figures["innocent requests with 503"] = len(seen.predictions.failures) - len(failures)
    return outcome


def _add(store: Store, name: str, graph: bytes) -> None:
    model = store.models.add("skin", name, kind="onnx", onnx=graph, preprocessing=_PLAIN, actor="test")
    register_calibration(store, model.reference, labelled_logits(), actor="test")


def _serving(target: Target, model: str) -> set[str]:
    """The workers that answered some of ten requests with a decision of the model."""
    replies = [_sent(target, model, 60) for _ in range(10)]
    return {reply.worker for reply in replies if reply.status == 200}


def _sent(target: Target, model: str, grey: int) -> Reply:
    path = f"/v1/predict?model={model}"
    return target.service.send("POST", path, plain_image(grey, 4), Content_Type="image/png")
