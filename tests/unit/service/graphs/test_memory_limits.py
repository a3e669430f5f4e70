"""A graph gets no more memory than its worker may take, inside ONNX Runtime's arena and outside."""

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from lifelong_core.configuration.serving_plan import plan_serving
from lifelong_core.configuration.settings import Settings
from lifelong_service.graphs.memory_limits import limit_memory
from tests.attacks.graphs import HostileGraph, branch_by_pixels, text_by_pixels
from tests.unit.service import onnx_graphs

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.images.preprocessing import Preprocessing
from lifelong_core.configuration.serving_plan import plan_serving
from lifelong_core.configuration.settings import Settings
from lifelong_service.graphs.classifier import load_classifier
from lifelong_service.graphs.memory_limits import limit_memory

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
from lifelong_service.http.middleware import RequestMiddleware
from lifelong_service.worker.draining import Draining

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
