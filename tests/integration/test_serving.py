"""The service with two real workers: what can be reached, what is in their memory, and how they end.

Heads, the log and faults under load are tested in tests/faults.
"""

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests import tools
from tests.integration.installation import Installation, image, install
from tests.integration.processes import (
    Reply,
    Service,
    eventually,
    running_service,
    sockets_of,
)

READY_SECONDS = 5.0


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return install(tmp_path_factory.mktemp("serving"))


@pytest.fixture(scope="module")
def service(installation: Installation) -> Iterator[Service]:
    with running_service(installation.settings.data_directory.parent, installation.token) as started:
        started.wait_for_workers()
        yield started


def test_an_oversized_chunked_body_is_cut_off_early(service: Service) -> None:
    sent = itertools.count()

    def endless() -> Iterator[bytes]:
        while next(sent) < 2000:
            yield bytes(100_000)

    with service.connect() as connection, pytest.raises((BrokenPipeError, ConnectionResetError)):
        connection._connection.request(
            "POST", "/v1/predict", endless(), connection._headers, encode_chunked=True
        )
    assert next(sent) < 1500
    assert service.send("GET", "/readyz").status == 200


def test_nothing_but_the_port_of_the_service_can_be_reached(service: Service) -> None:
    """Neither by network nor by a named socket: the supervisor of the workers would run what it is told there."""
    assert sockets_of(service) == {f"127.0.0.1:{service.port}"}
    for path in ("/v1/predict", "/v1/logits", "/v1/feedback", "/v1/admin/tasks", "/v1/admin/models"):
        for kind in ("application/vnd.bentoml+pickle", "application/x-pickle", "application/pickle"):
            assert service.send("POST", path, b"\x80\x04N.", Content_Type=kind).status == 415


def test_only_our_routes_answer(service: Service) -> None:
    for path in ("/schema.json", "/docs.json", "/healthz", "/static_content/x", "/docs"):
        reply = service.send("GET", path)
        assert (reply.status, reply.body["error"]["field"]) == (404, "path"), path
    paths = json.loads(service.send("GET", "/openapi.json").content)["paths"]
    assert {"/v1/predict", "/v1/logits", "/v1/feedback"} <= set(paths)


def test_metrics_count_both_workers(service: Service) -> None:
    def predictions() -> float:
        text = service.send("GET", "/metrics").content.decode()
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        named = [s for s in samples if s.name == "lifelong_predictions_total"]
        return sum(s.value for s in named if s.labels["environment"] == "counted")

    before, workers, sent = predictions(), set(), 0
    while workers != {"1", "2"}:
        reply = service.send("POST", "/v1/predict?environment=counted", image())
        workers.add(reply.worker)
        sent += 1
    assert predictions() == before + sent


def maps_of(process: int) -> str:
    return Path(f"/proc/{process}/maps").read_text()


def test_workers_have_neither_torch_nor_sklearn_nor_onnx_in_memory(service: Service) -> None:
    assert service.send("POST", "/v1/predict", image()).status == 200
    workers = service.workers()
    assert len(workers) == 2
    for worker in workers:
        mapped = maps_of(worker.pid)
        assert "onnxruntime" in mapped
        assert "/torch/" not in mapped
        assert "/sklearn/" not in mapped
        assert "/onnx/" not in mapped


def test_the_search_in_memory_would_find_sklearn() -> None:
    code = "import sklearn.utils.murmurhash, sys; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        assert "/sklearn/" in maps_of(process.pid)
        process.communicate()


@pytest.mark.skipif(not tools.has_deadlines(), reason="a deadline of the product")
def test_ready_in_time(installation: Installation, tmp_path: Path) -> None:
    """A stated deadline of the product; the best of three starts, since the machine may be busy."""
    folder = installation.settings.data_directory
    seconds: list[float] = []
    while len(seconds) < 3 and not (seconds and seconds[-1] < READY_SECONDS):
        log = tmp_path / str(len(seconds))
        log.mkdir()
        with running_service(log, installation.token, data_directory=folder) as started:
            seconds.append(started.wait_until_ready())
    assert min(seconds) < READY_SECONDS


def test_sigterm_answers_what_is_under_way_and_exits_with_zero(
    installation: Installation, tmp_path: Path
) -> None:
    folder = installation.settings.data_directory
    with running_service(tmp_path, installation.token, data_directory=folder) as service:
        service.wait_for_workers()
        picture = image()
        stop = threading.Event()
        replies: list[Reply] = []

        def send() -> None:
            with service.connect() as connection:
                while not stop.is_set():
                    try:
                        replies.append(connection.send("POST", "/v1/predict", picture))
                    except OSError:
                        return

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(replies) > 20, "some answers")
        status = service.terminate()
        stop.set()
        for thread in threads:
            thread.join()
        assert status == 0, service.last_words()
        assert {reply.status for reply in replies} == {200}
        assert service.last_words().count("the worker has stopped") == 2
    with installation.store() as store:
        assert all(store.predictions.get(UUID(reply.body["prediction_id"])) for reply in replies)


def test_sigterm_is_heeded_also_while_workers_are_being_started(
    installation: Installation, tmp_path: Path
) -> None:
    """What looks after the workers drops it then."""
    folder = installation.settings.data_directory
    with running_service(tmp_path, installation.token, data_directory=folder) as service:
        eventually(service.workers, "the first worker")
        assert service.terminate() == 0, service.last_words()
