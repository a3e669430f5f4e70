"""Output of a real service and a real monitor, from start to end: only lines of one format."""

import json
import signal
from pathlib import Path
from typing import Any

from lifelong_core.store import register_calibration
from lifelong_core.values.preprocessing import Preprocessing
from tests.integration.installation import image, install, labelled_logits, plain_image
from tests.integration.monitors import running_monitor
from tests.integration.processes import eventually, running_service
from tests.unit.service import onnx_graphs

FIELDS = {"time", "level", "logger", "process", "message"}


def read(log: Path) -> list[dict[str, Any]]:
    """The lines of a log, each of which has to be a JSON object."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        assert set(line) >= FIELDS, line
        assert set(line) <= FIELDS | {"details", "traceback"}, line
    return lines


def test_a_service_writes_nothing_but_json_lines(tmp_path: Path) -> None:
    installation = install(tmp_path)
    with installation.store() as store:
        preprocessing = Preprocessing.model_validate(
            {"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]}
        )
        graph = onnx_graphs.fails_on_white()
        model = store.models.add(
            "skin", "table", kind="onnx", onnx=graph, preprocessing=preprocessing, actor="test"
        )
        register_calibration(store, model.reference, labelled_logits(), actor="test")
    with running_service(tmp_path, installation.token) as service:
        service.wait_for_workers()
        sent = {
            "good": service.send("POST", "/v1/predict", image()).status,
            "cut": service.send("POST", "/v1/predict", image("JPEG")[:200]).status,
            "bad_tiff": service.send("POST", "/v1/predict", image("TIFF")[:150]).status,
            "white": service.send("POST", "/v1/predict?model=table", plain_image(255)).status,
            "npy": service.send("POST", "/v1/logits", b"x", Content_Type="application/x-npy").status,
            "json": service.send("POST", "/v1/logits", b"{", Content_Type="application/json").status,
            "nowhere": service.send("GET", "/nowhere").status,
        }
        head = service.send("GET", "/v1/admin/models/linear/heads/1").body["head"] | {"bias": [1.0, 0.0, 0.0]}
        with service.connect() as connection:
            swapped = connection.post_json("/v1/admin/models/linear/heads", {"head": head})
        before = service.workers()
        before[0].send_signal(signal.SIGKILL)
        eventually(lambda: len(set(service.workers()) - set(before)) == 1, "another worker")
        service.wait_for_workers()
        assert service.terminate() == 0
    assert sent["good"] == 200
    assert swapped.status == 201
    assert all(400 <= status < 600 for name, status in sent.items() if name != "good"), sent
    lines = read(service.log)
    said = [line["message"] for line in lines]
    assert any("starting to listen" in message for message in said)
    assert said.count("the worker has started") == 3
    assert said.count("the worker has stopped") == 2
    assert installation.token not in service.log.read_text()
    with running_service(tmp_path, port=1, host="192.0.2.1") as refused:
        assert refused.process.wait(30) == 2
    assert "cannot listen" in read(refused.log)[-1]["message"]


def test_a_monitor_writes_nothing_but_json_lines(tmp_path: Path) -> None:
    installation = install(tmp_path)
    with installation.store() as store:
        store.artifacts.put(b"anything")
        job = store.jobs.submit("validate", {"nonsense": 1}, actor="test")
        with running_monitor(tmp_path, cycle_interval_seconds=0.5) as monitor:
            eventually(lambda: store.jobs.get(job.id).state == "failed", "the job to fail")
            assert monitor.terminate() == 0
    said = [line["message"] for line in read(monitor.log)]
    assert said[0].startswith("watching in mode auto")
    assert any(str(job.id) in message for message in said)
    assert said[-1] == "stopped"
