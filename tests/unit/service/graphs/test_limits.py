"""A graph that hangs on an image is stopped; the image gets 503, and the worker continues."""

import logging
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import onnx
import pytest

from lifelong_core.configuration.serving_plan import plan_serving
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import register_calibration
from lifelong_core.values.errors import UnavailableError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.limits import LOOK_SECONDS, RunLimit, limit_memory
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.worker.model_loader import HangingModels
from tests.attacks.graphs import HostileGraph, branch_by_pixels, text_by_pixels
from tests.integration.processes import eventually
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


def test_a_run_that_goes_on_after_its_end_is_reported_with_its_model() -> None:
    noted: list[str] = []
    limit = RunLimit(0.1, noted.append)
    limit.start()
    try:
        with limit.limit("slow@1") as options:
            eventually(lambda: options.terminate, "the end of the run")
            assert limit.failure is None
            eventually(lambda: limit.failure is not None, "the report")
            assert "slow@1 hangs" in str(limit.failure)
            time.sleep(2 * LOOK_SECONDS)
        assert noted == ["slow@1"]
    finally:
        limit.close()


def test_a_model_that_hung_too_often_is_not_served_until_its_file_is_removed(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lifelong_service.worker.registry_poller.RETRY_SECONDS", 0)
    file = service.settings.hanging_models_file
    hanging = HangingModels(file, maximum=service.settings.maximum_graph_hangs)

    def predict(model: str) -> tuple[int, str]:
        answer = service.client.post(f"/v1/predict?model={model}", content=png(60))
        return answer.status_code, answer.text

    for _ in range(service.settings.maximum_graph_hangs - 1):
        hanging.note("linear@1")
    service.worker.poller.poll()
    assert predict("linear")[0] == 200
    hanging.note("linear@1")
    eventually(lambda: "it has hung 3 workers within a day" in predict("linear")[1], "the quarantine")
    assert predict("linear")[0] == 503
    ready = service.client.get("/readyz").text
    assert "it has hung 3 workers" in ready
    assert f"remove {file}." in ready
    assert "a model is not served any more" in caplog.messages
    assert predict("table")[0] == 200
    file.unlink()
    eventually(lambda: predict("linear")[0] == 200, "the end of the quarantine")


def test_a_hang_counts_for_a_day_and_damaged_lines_do_not_count(tmp_path: Path) -> None:
    hanging = HangingModels(tmp_path / "hanging", maximum=2)
    assert hanging.quarantined() == {}
    old, new = (datetime.now(UTC) - timedelta(hours=hours) for hours in (25, 23))
    lines = [f"{old.isoformat()} a@1", f"{new.isoformat()} a@1", "x b@1", "", f"{new.isoformat()}"]
    clock_was_wrong = ("2090-01-01T00:00:00+00:00", "0001-01-01T00:00:00+14:00")
    lines += [f"{moment} a@1" for moment in clock_was_wrong for _ in range(2)]
    (tmp_path / "hanging").write_text("\n".join(lines) + "\n")
    assert hanging.quarantined() == {}
    hanging.check("a@1")
    hanging.note("a@1")
    assert list(hanging.quarantined()) == ["a@1"]
    with pytest.raises(
        UnavailableError, match=f"hung 2 workers within a day.* remove {tmp_path / 'hanging'}"
    ):
        hanging.check("a@1")
    hanging.check("b@1")


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


PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_core.configuration.serving_plan import plan_serving
from lifelong_core.configuration.settings import Settings
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.limits import limit_memory

settings = Settings(maximum_graph_memory_bytes=500_000_000, maximum_worker_memory_bytes=int(sys.argv[2]))
limit_memory(settings, plan_serving(2))
held = bytearray(int(sys.argv[3]))
plain = Preprocessing(colour="grey", mean=[0.0], standard_deviation=[1.0])
classifier = load_classifier(Path(sys.argv[1]), plain, classes=3)
grey, white = (np.full((1, 4, 4), value, np.float32) for value in (0.5, 1))
expected = classifier.logits([grey])
try:
    classifier.logits([white])
except InvalidInputError as error:
    print(error.message)
assert np.array_equal(classifier.logits([grey]), expected)
# Not ru_maxrss, which begins with that of the process that started this one.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) * 1024)
"""

REQUESTS = """
import asyncio, resource, threading
from pathlib import Path
from lifelong_service.guard.middleware import RequestMiddleware
from lifelong_service.process.draining import Draining

async def large(scope, receive, send):
    bytearray(1 << 30)

async def thread(scope, receive, send):
    threading.Thread(target=print).start()

async def send(message):
    print(message.get("status") or message["body"].decode())

used = next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (1024 * used + (4 << 20), resource.RLIM_INFINITY))
draining = Draining(lambda: None, listening_seconds=1, seconds=1)
for app in (large, thread):
    answering = RequestMiddleware(app, timeout_seconds=5, worker="1", draining=draining)
    scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": [(b"host", b"service")]}
    asyncio.run(answering(scope | {"http_version": "1.1"}, None, send))
"""


@pytest.mark.parametrize(
    ("make", "worker_bytes"), [(branch_by_pixels, 20_000_000_000), (text_by_pixels, 1_000_000_000)]
)
def test_an_image_that_takes_more_fails(
    make: Callable[[], HostileGraph], worker_bytes: int, tmp_path: Path
) -> None:
    (tmp_path / "model.onnx").write_bytes(make().content)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model.onnx"), str(worker_bytes), "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    message, most = done.stdout.splitlines()
    assert "it takes more memory than there is" in message
    assert int(most) < 1_000_000_000


def test_with_a_gpu_there_is_no_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit_memory(Settings(), plan_serving(2, uses_gpu=True))
    limit_memory(Settings(execution_providers=("OpenVINOExecutionProvider",)), plan_serving(2))
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_graph_that_is_too_large_to_be_loaded_names_the_setting(tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString(onnx_graphs.linear())
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(30_000_000, np.float32), "large"))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model.onnx"), "1000000000", "850000000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    message = done.stderr.splitlines()[-1]
    assert "it takes more memory than there is" in message
    assert "Raise LIFELONG_MAXIMUM_WORKER_MEMORY_BYTES" in message


def test_requests_for_which_there_is_no_memory_get_503() -> None:
    done = subprocess.run([sys.executable, "-c", REQUESTS], capture_output=True, text=True, check=True)
    status, body, *others = done.stdout.splitlines()
    assert others == [status, body]
    assert status == "503"
    assert "no memory left" in body
    assert "LIFELONG_MAXIMUM_WORKER_MEMORY_BYTES" in body
