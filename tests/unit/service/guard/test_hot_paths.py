"""Predictions that bypass the framework get the same answers as those that pass it, faults included."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import httpx
import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Scope
from lifelong_service import metrics
from tests.unit.service.conftest import Installations, Service, png, running

JSON = "application/json"


@dataclass(frozen=True)
class Case:
    """One request."""

    path: str
    content: bytes
    headers: dict[str, Any] = field(default_factory=dict)


def npy(rows: int = 2) -> bytes:
    file = BytesIO()
    np.save(file, np.ones((rows, 3), dtype=np.float32))
    return file.getvalue()


def logits(**document: Any) -> bytes:
    return json.dumps({"logits": [[1.0, 2.0, 3.0]], "model": "remote", **document}).encode()


def multipart(name: str, content: bytes) -> Case:
    body = (
        f'--edge\r\nContent-Disposition: form-data; name="{name}"; filename="i"\r\n\r\n'.encode()
        + content
        + b"\r\n--edge--\r\n"
    )
    return Case("/v1/predict", body, {"Content-Type": "multipart/form-data; boundary=edge"})


CASES = {
    "an image": Case("/v1/predict", png(), {"Content-Type": "image/png"}),
    "an image without a content type": Case("/v1/predict", png()),
    "an image in a form": multipart("image", png()),
    "a form without an image": multipart("other", png()),
    "a broken form": Case("/v1/predict", b"--", {"Content-Type": "multipart/form-data; boundary=edge"}),
    "a form without a boundary": Case("/v1/predict", b"--", {"Content-Type": "multipart/form-data"}),
    "no image": Case("/v1/predict", b""),
    "a broken image": Case("/v1/predict", png()[:60]),
    "no image at all": Case("/v1/predict", b"text"),
    "another content type": Case("/v1/predict", b"{}", {"Content-Type": JSON}),
    "pickle": Case("/v1/predict", b"x", {"Content-Type": "application/vnd.bentoml+pickle"}),
    "a content coding": Case("/v1/predict", png(), {"Content-Encoding": "gzip"}),
    "parameters": Case("/v1/predict?environment=clinic-a&group=p1&request_id=r1", png()),
    "parameters in headers": Case("/v1/predict", png(), {"X-Lifelong-Environment": "clinic-b"}),
    "query and header": Case(
        "/v1/predict?environment=clinic-c", png(), {"X-Lifelong-Environment": "clinic-b"}
    ),
    "an unknown parameter": Case("/v1/predict?enviroment=a", png()),
    "a parameter twice": Case("/v1/predict?group=a&group=b", png()),
    "an invalid environment": Case("/v1/predict?environment=A!", png()),
    "bytes that are no text": Case("/v1/predict?group=%ff", png()),
    "U+0000": Case("/v1/predict?group=%00", png()),
    "a header that is not ASCII": Case("/v1/predict", png(), {"X-Lifelong-Group": "é".encode()}),
    "an unknown model": Case("/v1/predict?model=other", png()),
    "an external model": Case("/v1/predict?model=remote", png()),
    "no token": Case("/v1/predict", png(), {"Authorization": None}),
    "a wrong token": Case("/v1/predict", png(), {"Authorization": "Bearer ll_wrong"}),
    "no bearer token": Case("/v1/predict", png(), {"Authorization": "Basic x"}),
    "a large body": Case("/v1/predict", bytes(60_000)),
    "logits": Case("/v1/logits", logits(), {"Content-Type": JSON}),
    "logits with an id": Case("/v1/logits", logits(request_id="r2"), {"Content-Type": JSON}),
    "npy": Case("/v1/logits?model=remote", npy(), {"Content-Type": "application/x-npy"}),
    "broken npy": Case("/v1/logits?model=remote", npy()[:-1], {"Content-Type": "application/x-npy"}),
    "too many rows": Case("/v1/logits?model=remote", npy(101), {"Content-Type": "application/x-npy"}),
    "no JSON": Case("/v1/logits", b"{", {"Content-Type": JSON}),
    "NaN": Case("/v1/logits", b'{"logits": [[NaN, 1, 2]]}', {"Content-Type": JSON}),
    "an unknown field": Case("/v1/logits", logits(other=1), {"Content-Type": JSON}),
    "a wrong shape": Case("/v1/logits", b'{"logits": [[1, 2], [3]]}', {"Content-Type": JSON}),
    "too much JSON": Case("/v1/logits", b" " * 30_000, {"Content-Type": JSON}),
}


@pytest.fixture(scope="module")
def both(installations: Installations, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Service]]:
    """Two applications on one store: predictions bypass the framework of the first, and pass that of the second."""
    folder = tmp_path_factory.mktemp("both")
    secrets = installations.copy_to(folder)
    settings = Settings(
        data_directory=folder,
        registry_poll_seconds=0.02,
        maximum_body_bytes=50_000,
        maximum_json_bytes=20_000,
        maximum_logits_rows=100,
    )
    with running(settings, secrets) as direct, running(settings, secrets, bypasses=False) as framework:
        yield [direct, framework]


def without_ids(answer: httpx.Response) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body, with the id of a prediction replaced."""
    text = re.sub(r'"prediction_id":\s*"[0-9a-f-]{36}"', '"prediction_id":""', answer.text)
    return answer.status_code, dict(answer.headers), text


def counts() -> Counter[tuple[str, int]]:
    """Requests by route and status."""
    samples = next(iter(metrics.REQUESTS.collect())).samples
    return Counter(
        {
            (one.labels["route"], int(one.labels["status"])): int(one.value)
            for one in samples
            if one.name.endswith("_total") and one.labels["status"].isdigit()
        }
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_both_paths_give_the_same_answer(both: list[Service], case: Case) -> None:
    before = counts()
    answers = [
        service.client.post(case.path, content=case.content, headers=dict(case.headers)) for service in both
    ]
    first, second = (without_ids(answer) for answer in answers)
    assert first == second
    seen = case.path.partition("?")[0], answers[0].status_code
    assert counts()[seen] == before[seen] + 2


def test_an_id_with_another_body_is_a_conflict_on_both_paths(both: list[Service]) -> None:
    for service in both:
        assert service.client.post("/v1/predict?request_id=again", content=png()).status_code == 200
    answers = [service.client.post("/v1/predict?request_id=again", content=png(9)) for service in both]
    assert without_ids(answers[0]) == without_ids(answers[1])
    assert answers[0].status_code == 409


def test_a_bound_token_is_refused_on_both_paths(both: list[Service]) -> None:
    _, secret = both[0].store.tokens.create("bound", [Scope.PREDICT], actor="test", environments=("here",))
    headers = {"Authorization": f"Bearer {secret}"}
    answers = [
        service.client.post("/v1/predict?environment=there", content=png(), headers=headers)
        for service in both
    ]
    assert without_ids(answers[0]) == without_ids(answers[1])
    assert answers[0].status_code == 403


def test_other_methods_and_paths_pass_the_framework(both: list[Service]) -> None:
    for method, path in (("GET", "/v1/predict"), ("PUT", "/v1/logits"), ("POST", "/v1/predict/")):
        first, second = (without_ids(service.client.request(method, path)) for service in both)
        assert first == second
        assert first[0] in (404, 405)
