"""The service with two real workers: no mixed heads, no lost prediction, no effect of bad input on others."""

import copy
import itertools
import json
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import Store, new_prediction_id
from tests import databases
from tests.integration.installation import COSTS, Installation, image, install
from tests.integration.processes import (
    Connection,
    Load,
    Reply,
    Service,
    eventually,
    lives,
    running_service,
    sockets_of,
)

SWAPS = 20
SWAP_SECONDS = 1.0
READY_SECONDS = 5.0


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[databases.PostgreSQL]:
    with databases.PostgreSQL() as server:
        yield server


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return install(tmp_path_factory.mktemp("serving"))


@pytest.fixture(scope="module")
def service(installation: Installation) -> Iterator[Service]:
    with running_service(installation.settings.data_directory.parent, installation.token) as started:
        started.wait_for_workers()
        yield started


def head_number(index: int) -> PostProcessingHead:
    """Heads that decide differently and never give the same probabilities."""
    bias = np.roll([2.0 + index / 8, 0.0, -1.0], index)
    return PostProcessingHead(1.0 + index / 16, bias, COSTS, [1 / 3] * 3, ("benign", "unclear", "malignant"))


def comes_from_its_head(body: Any, logits: Any, heads: dict[int, PostProcessingHead]) -> bool:
    """Whether every row of an answer is, to the last bit, what the one head that it names makes of the logits sent."""
    output = heads[body["head_version"]].apply(logits)
    return all(
        row["probabilities"] == output.probabilities[index].tolist()
        and row["expected_costs"] == output.expected_costs[index].tolist()
        and row["decision"] == output.decisions[index]
        for index, row in enumerate(body["predictions"])
    )


def test_swaps_under_load_mix_no_heads_lose_nothing_and_reach_both_workers(
    service: Service, installation: Installation
) -> None:
    numbers = itertools.count()

    def request(connection: Connection) -> tuple[Any, Reply]:
        logits = np.random.default_rng(next(numbers)).normal(size=(4, 3)).round(3).tolist()
        return logits, connection.post_json("/v1/logits", {"logits": logits, "environment": "swaps"})

    published: dict[int, float] = {}
    with installation.store() as store:
        heads = {1: store.heads.get("linear", 1).head}
        with Load(service, request) as load:
            for index in range(SWAPS):
                record = store.heads.publish("linear", head_number(index), environment=None, actor="test")
                published[record.version] = time.monotonic()
                heads[record.version] = record.head
                eventually(
                    lambda version=record.version: workers_at(load.results, version) == {"1", "2"},
                    f"head {record.version} in both workers",
                )
        answered = [
            UUID(row["prediction_id"]) for _, reply in load.results for row in reply.body["predictions"]
        ]
        missing = [identifier for identifier in answered if store.predictions.get(identifier) is None]

    assert load.faults == []
    assert {reply.status for _, reply in load.results} == {200}
    assert len(set(answered)) == len(answered) == 4 * len(load.results)
    assert missing == []
    mixed = [
        reply.body for logits, reply in load.results if not comes_from_its_head(reply.body, logits, heads)
    ]
    assert mixed == []
    for _, reply in load.results:
        due = [version for version, moment in published.items() if reply.sent_at > moment + SWAP_SECONDS]
        assert reply.body["head_version"] >= max(due, default=1), f"worker {reply.worker} is late"
    # The checker must be able to fail: an answer with the rows of two heads.
    logits, reply = load.results[-1]
    other = heads[reply.body["head_version"] - 1].apply(logits)
    forged = copy.deepcopy(reply.body)
    forged["predictions"][2]["probabilities"] = other.probabilities[2].tolist()
    assert not comes_from_its_head(forged, logits, heads)


def workers_at(results: list[Any], version: int) -> set[str]:
    """Which workers have answered with this head (looking at the newest answers only)."""
    return {reply.worker for _, reply in results[-200:] if reply.body["head_version"] == version}


@pytest.mark.parametrize("kind", databases.KINDS)
def test_after_sigkill_every_answered_prediction_is_in_the_log(
    kind: str, tmp_path: Path, postgresql_server: databases.PostgreSQL
) -> None:
    with databases.database(kind, tmp_path, postgresql_server, migrated=False) as url:
        installation = install(tmp_path, url)
        with running_service(tmp_path, installation.token, database_url=url) as service:
            service.wait_until_ready()
            picture = image()
            with Load(service, lambda connection: connection.send("POST", "/v1/predict", picture)) as load:
                eventually(lambda: len(load.results) > 300, "some answers")
                service.kill()
            answered = [UUID(reply.body["prediction_id"]) for reply in load.results if reply.status == 200]
        assert len(answered) > 300
        assert load.faults, "the kill came while requests were under way"
        with Store.open(url, installation.settings.resolved_artifacts_url) as store:
            missing = [identifier for identifier in answered if store.predictions.get(identifier) is None]
            assert missing == []
            assert store.predictions.get(new_prediction_id()) is None, (
                "what was never answered is not found either"
            )


def png_header(edge: int) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    header = struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def logits_body(values: str) -> bytes:
    return b'{"logits": ' + values.encode() + b"}"


def without_token(service: Service) -> Reply:
    with service.connect(token=None) as connection:
        return connection.send("POST", "/v1/predict", image())


BAD_INPUT: dict[str, tuple[Callable[[Service], Reply], int, str]] = {
    "a text file": (lambda s: s.send("POST", "/v1/predict", b"not an image at all"), 422, "image"),
    "a truncated JPEG": (lambda s: s.send("POST", "/v1/predict", image("JPEG", 64)[:700]), 422, "image"),
    "a huge PNG header": (lambda s: s.send("POST", "/v1/predict", png_header(30_000)), 413, "image"),
    "a wrong logits shape": (
        lambda s: s.send("POST", "/v1/logits", logits_body("[[1, 2]]"), Content_Type="application/json"),
        422,
        "logits",
    ),
    "NaN logits": (
        lambda s: s.send("POST", "/v1/logits", logits_body("[[1, 2, NaN]]"), Content_Type="application/json"),
        422,
        "logits",
    ),
    "an illegal environment": (
        lambda s: s.send("POST", "/v1/predict?environment=../../etc", image()),
        422,
        "environment",
    ),
    "a missing token": (
        without_token,
        401,
        "Authorization",
    ),
    "an oversized body": (lambda s: s.send("POST", "/v1/predict", bytes(21_000_000)), 413, "body"),
}


def test_bad_input_is_explained_while_good_requests_are_answered(service: Service) -> None:
    picture = image()
    with Load(service, lambda connection: connection.send("POST", "/v1/predict", picture), threads=3) as load:
        for _ in range(5):
            for name, (send, status, field) in BAD_INPUT.items():
                try:
                    reply = send(service)
                except (BrokenPipeError, ConnectionResetError):
                    assert name == "an oversized body"  # turned away while the client was still sending
                    continue
                assert reply.status == status, name
                error = reply.body["error"]
                assert error["field"] == field, name
                assert error["hint"], name
        eventually(lambda: len(load.results) > 50, "good answers")
    assert load.faults == []
    assert {reply.status for reply in load.results} == {200}


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


def test_workers_do_not_outlive_their_parent(installation: Installation, tmp_path: Path) -> None:
    folder = installation.settings.data_directory
    with running_service(tmp_path, installation.token, data_directory=folder) as service:
        service.wait_for_workers()
        workers = service.workers()
        service.process.kill()
        service.process.wait()
        eventually(lambda: not any(lives(worker) for worker in workers), "the orphans to end")
