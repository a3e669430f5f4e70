"""A graph that hangs on an image is stopped; the image gets 503, and the worker continues."""

import logging
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from lifelong_core.errors import UnavailableError
from lifelong_core.preprocessing import Preprocessing
from lifelong_core.store import register_calibration
from lifelong_service.graphs.classifier import load_classifier
from lifelong_service.graphs.run_limit import RunLimit
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import Service, calibration, png

GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})
DARK, WHITE = (np.full((1, onnx_graphs.EDGE, onnx_graphs.EDGE), value, np.float32) for value in (0.25, 1.0))


@pytest.fixture
def limit() -> Iterator[RunLimit]:
    found = RunLimit(0.3)
    found.start()
    yield found
    found.close()


def test_a_run_that_does_not_end_is_ended(limit: RunLimit, capfd: pytest.CaptureFixture[str]) -> None:
    classifier = load_classifier(onnx_graphs.endless_on_white(), GREY, classes=3, limit=limit)
    expected = classifier.logits([DARK])
    np.testing.assert_allclose(expected, DARK.reshape(1, -1) @ onnx_graphs.linear_weights(), atol=1e-6)
    for _ in range(2):
        with pytest.raises(UnavailableError, match=r"longer than 0\.3 s"):
            classifier.logits([DARK, WHITE])
        assert np.array_equal(classifier.logits([DARK]), expected)
    assert capfd.readouterr() == ("", "")


def test_the_parts_of_a_frozen_batch_share_the_time(limit: RunLimit) -> None:
    graph = load_classifier(onnx_graphs.linear(batch=1), GREY, classes=3, limit=limit)
    with limit.limit() as options:
        while not options.terminate:
            time.sleep(0.01)
        with pytest.raises(UnavailableError):
            graph._logits([DARK] * 3, options)


def test_the_worker_goes_on(
    registered: None, serve: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    service = serve(request_timeout_seconds=1.0)
    model = service.store.models.add(
        "skin", "endless", kind="onnx", onnx=onnx_graphs.endless_on_white(), preprocessing=GREY, actor="test"
    )
    register_calibration(service.store, model.reference, calibration(), actor="test")
    service.worker.poller.poll()

    def predict(pixels: int) -> int:
        path = "/v1/predict?model=endless"
        return service.client.post(
            path, content=png(pixels), headers={"Content-Type": "image/png"}
        ).status_code

    end = time.monotonic() + 20
    while predict(60) != 200:
        assert time.monotonic() < end
        time.sleep(0.05)
    with caplog.at_level(logging.ERROR, logger="lifelong_service.prediction.batch_pipeline"):
        assert predict(255) == 503
        assert predict(60) == 200
    # A busy machine lets other parts of the worker warn, too.
    said = [
        record.message
        for record in caplog.records
        if record.name == "lifelong_service.prediction.batch_pipeline"
    ]
    assert said == ["inference was ended"]
    assert service.client.get("/readyz").status_code == 200
