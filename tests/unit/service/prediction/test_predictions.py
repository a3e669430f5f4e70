"""Predict and logits: the answer follows the formula, and it is in the log."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from starlette.requests import Request

from lifelong_core.deploy import LabeledLogits, PostProcessingHead
from lifelong_core.store import register_calibration
from lifelong_core.values.errors import InvalidInputError
from lifelong_service.prediction.requests import LogitsRequest, RequestContext
from lifelong_service.routes.prediction_requests import parameters_of
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import CLASS_NAMES, Service, calibration, png
from tests.unit.service.waiting import eventually

LOGITS = [[2.0, 0.5, -1.0], [0.0, 0.25, 3.0]]


@pytest.fixture
def service(shared: Service) -> Service:
    return shared.counting_anew()


def npy(array: np.ndarray) -> bytes:
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


def head_of(service: Service, model: str = "linear", version: int = 1) -> PostProcessingHead:
    return service.store.heads.get(model, version).head


def test_an_image_is_decided_as_the_formula_says_and_logged(service: Service) -> None:
    pixels = np.arange(16).reshape(4, 4) * 16
    answer = service.client.post("/v1/predict?environment=site-a", content=png(pixels)).json()
    scaled = (pixels.reshape(1, 16) / 255 - 0.5) / 0.5
    logits = (scaled @ onnx_graphs.linear_weights()).astype(np.float32)
    prediction = service.store.predictions.get(UUID(answer["prediction_id"]))
    np.testing.assert_allclose(prediction.logits, logits[0], atol=1e-5)
    output = head_of(service).apply(prediction.logits[None])
    assert answer["decision"] == prediction.decision == output.decisions[0]
    assert answer["label"] == (*CLASS_NAMES, "abstain")[answer["decision"]]
    assert list(answer["probabilities"].values()) == output.probabilities[0].tolist()
    assert tuple(answer["expected_costs"]) == (*CLASS_NAMES, "abstain")
    assert list(answer["expected_costs"].values()) == output.expected_costs[0].tolist()
    assert {answer["task"], answer["model"], answer["environment"]} == {"skin", "linear", "site-a"}
    assert (answer["model_version"], answer["head_version"], answer["request_id"]) == (1, 1, None)
    assert prediction.environment == "site-a"
    assert prediction.group_hash is None


def test_multipart(service: Service) -> None:
    for part in ("image", "file"):
        answer = service.client.post("/v1/predict", files={part: ("a.png", png(7), "image/png")})
        assert answer.status_code == 200
        assert answer.json()["environment"] == "default"


def test_the_bytes_decide_not_the_content_type(service: Service) -> None:
    for kind in ("image/png", "image/jpeg", "application/octet-stream", None):
        assert (
            service.client.post("/v1/predict", content=png(), headers={"Content-Type": kind}).status_code
            == 200
        )


def test_other_content_types_are_refused(service: Service) -> None:
    for path, kind in (
        ("/v1/predict", "application/x-pickle"),
        ("/v1/predict", "application/vnd.bentoml+pickle"),
        ("/v1/predict", "application/x-www-form-urlencoded"),
        ("/v1/logits", "application/x-pickle"),
        ("/v1/feedback", "application/x-pickle"),
        ("/v1/admin/tasks", "application/x-pickle"),
    ):
        answer = service.client.post(path, content=b"\x80\x04N.", headers={"Content-Type": kind})
        assert answer.status_code == 415
        assert answer.json()["error"]["field"] == "Content-Type"


def test_some_rows_of_logits_count_as_one_sample() -> None:
    for rows, weight in ((1, 1), (8, 1), (9, 2), (64, 8), (500, 63)):
        request = LogitsRequest(RequestContext(None, "ward", None, None), np.zeros((rows, 3), np.float32))
        assert (request.samples, request.weight) == (rows, weight)


def test_logits_as_json_and_npy_give_the_same_decisions(
    registered: None, serve: Callable[..., Service]
) -> None:
    service = serve()
    first = service.client.post(
        "/v1/logits", json={"logits": LOGITS, "model": "remote", "environment": "b"}
    ).json()
    assert first["classes"] == list(CLASS_NAMES)
    assert first["decisions"] == [*CLASS_NAMES, "abstain"]
    output = head_of(service, "remote").apply(LOGITS)
    for row, item in enumerate(first["predictions"]):
        assert item["probabilities"] == output.probabilities[row].tolist()
        assert item["expected_costs"] == output.expected_costs[row].tolist()
        assert item["decision"] == output.decisions[row]
        assert item["label"] == first["decisions"][item["decision"]]
    for kind in ("application/x-npy", "application/octet-stream"):
        again = service.client.post(
            "/v1/logits?model=remote&environment=b",
            content=npy(np.array(LOGITS)),
            headers={"Content-Type": kind},
        ).json()
        for one, other in zip(first["predictions"], again["predictions"], strict=True):
            assert one.pop("prediction_id", 0) != other.pop("prediction_id")
            assert {**one, "prediction_id": 0} == {**other, "prediction_id": 0}
        first = service.client.post("/v1/logits", json={"logits": LOGITS, "model": "remote"}).json()
    assert np.array_equal(
        [row.logits for row in service.store.predictions.read_since(None, limit=2)[0]], np.float32(LOGITS)
    )


def test_parameters_may_be_headers_and_the_query_is_stronger(service: Service) -> None:
    headers = {
        "X-Lifelong-Environment": "from-header",
        "X-Lifelong-Request-Id": "r1",
        "X-Lifelong-Model": "nan@1",
    }
    answer = service.client.post(
        "/v1/predict?environment=from-query", content=png(200), headers=headers
    ).json()
    assert (answer["environment"], answer["request_id"], answer["model"]) == ("from-query", "r1", "nan")


def test_headers_that_may_mean_two_things_are_refused() -> None:
    for header, value in (
        ("X-Lifelong-Group", "M\u00fcller".encode()),
        ("X-Lifelong-Group", "M\u00fcller".encode("latin-1")),
        ("X-Lifelong-Request-Id", "M\u00fcller".encode()),
    ):
        headers = [(header.lower().encode(), value)]
        with pytest.raises(InvalidInputError) as told:
            parameters_of(Request({"type": "http", "query_string": b"", "headers": headers}))
        assert told.value.field == header


def test_groups_are_logged_as_hashes(registered: None, serve: Callable[..., Service]) -> None:
    service = serve()
    service.client.post("/v1/predict?group=patient-1", content=png())
    service.client.post("/v1/logits", json={"logits": LOGITS, "group": "patient-1"})
    service.client.post("/v1/logits", json={"logits": LOGITS, "groups": ["patient-2", None]})
    rows, _ = service.store.predictions.read_since(None, limit=9)
    hashes = [row.group_hash for row in rows]
    assert hashes[0] == hashes[1] == hashes[2] is not None
    assert hashes[3] not in (None, hashes[0])
    assert hashes[4] is None


def test_external_models_take_logits_only(service: Service) -> None:
    answer = service.client.post("/v1/predict?model=remote", content=png())
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "model"


def test_wrong_parameters(service: Service) -> None:
    for path, field, status in (
        ("?environment=Not%20Legal", "environment", 422),
        ("?environment=", "environment", 422),
        ("?environment=" + "e" * 65, "environment", 422),
        ("?enviroment=site-a", "enviroment", 422),
        ("?group=" + "g" * 257, "group", 422),
        ("?request_id=" + "r" * 129, "request_id", 422),
        ("?request_id=a%00b", "request_id", 422),
        ("?request_id=M%FCller", "request_id", 422),
        ("?group=M%FCller", "group", 422),
        ("?group=nan", "group", 422),
        ("?group=None", "group", 422),
        ("?group=%20", "group", 422),
        ("?model=nothing", "model", 404),
        ("?model=linear@99", "model", 404),
    ):
        for answer in (
            service.client.post("/v1/predict" + path, content=png()),
            service.client.post("/v1/logits" + path, json={"logits": LOGITS}),
        ):
            assert answer.status_code == status
            error = answer.json()["error"]
            assert error["field"] == field
            assert error["hint"]
        assert service.logged() == 0


def test_parameters_at_the_limit(service: Service) -> None:
    for path in (
        "?environment=" + "e" * 64,
        "?group=" + "g" * 256,
        "?request_id=" + "r" * 128,
        "?model=linear@1",
    ):
        assert service.client.post("/v1/predict" + path, content=png()).status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"not json", "body"),
        (b"[]", "body"),
        (b"{}", "logits"),
        (b'{"logits": 1}', "logits"),
        (b'{"logits": []}', "logits"),
        (b"[" * 300, "body"),
        (b'{"logits": [1, 2, 3]}', "logits"),
        (b'{"logits": [[1, 2]]}', "logits"),
        (b'{"logits": [[1, 2, 3], [1, 2]]}', "logits"),
        (b'{"logits": [[1, 2, NaN]]}', "logits"),
        (b'{"logits": [[1, 2, Infinity]]}', "logits"),
        (b'{"logits": [[1, 2, 1e300]]}', "logits"),
        (b'{"logits": [[1, 2, 1' + b"0" * 400 + b"]]}", "logits"),
        (b'{"logits": [["a", "b", "c"]]}', "logits"),
        (b'{"logits": {"a": 1}}', "logits"),
        (b'{"logits": "abc"}', "logits"),
        (b'{"logits": [[], []]}', "logits"),
        (b'{"logits": [[1, null, 2]]}', "logits"),
        (b'{"logits": [[1, 2, 3]], "groups": []}', "groups"),
        (b'{"logits": [[1, 2, 3]], "groups": [""]}', "groups.0"),
        (b'{"logits": [[1, 2, 3]], "groups": ["NaN"]}', "groups.0"),
        (b'{"logits": [[1, 2, 3]], "grops": ["x"]}', "grops"),
        (b'{"logits": [[1, 2, 3]], "environment": "NO"}', "environment"),
    ],
)
def test_wrong_logits(service: Service, body: bytes, field: str) -> None:
    answer = service.client.post("/v1/logits", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field
    assert service.logged() == 0


@pytest.mark.parametrize(
    "body",
    [
        b"no npy",
        npy(np.array(LOGITS))[:-1],
        npy(np.array(LOGITS)) + b"x",
        npy(np.array(LOGITS)).replace(b"(2, 3)", b"(9999999, 9999999)"),
        npy(np.array(["a", "b"])),
        npy(np.zeros((2, 3), dtype=complex)),
    ],
    ids=["garbage", "cut off", "too long", "huge shape", "text", "complex"],
)
def test_wrong_npy(service: Service, body: bytes) -> None:
    answer = service.client.post("/v1/logits", content=body, headers={"Content-Type": "application/x-npy"})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "logits"


def test_pickled_objects_in_npy_are_not_loaded(service: Service) -> None:
    file = BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    answer = service.client.post(
        "/v1/logits", content=file.getvalue(), headers={"Content-Type": "application/x-npy"}
    )
    assert answer.status_code == 422
    assert "object" in answer.json()["error"]["message"]


def test_logits_on_a_grid_may_sum_to_one_now_and_then_but_not_all_the_time(service: Service) -> None:
    def answers(rows: list[Any]) -> int:
        return int(service.client.post("/v1/logits", json={"logits": rows, "model": "remote"}).status_code)

    on_grid = [[0.5, 0.25, 0.25], [1, 0, 0], [0.3, 0.7, 0], [0.0625, 0.4375, 0.5], [0, 1, 0]]
    assert [answers([on_grid[k]]) for k in (0, 1, 0, 1, 2, 3, 0, 4, 0)] == [200] * 7 + [422] * 2
    assert answers([[3, -2, 0]]) == 200
    assert [answers(on_grid[:4]), answers(on_grid[:4]), answers(on_grid)] == [200, 200, 422]
    assert answers([[0.23951, 0.5, 0.26049]]) == 422


def test_one_logit_per_row_is_that_of_the_second_of_two_classes(
    registered: None, serve: Callable[..., Service]
) -> None:
    service = serve()
    service.store.tasks.add("pair", ("a", "b"), [[0, 1], [1, 0]], actor="test")
    service.store.models.add("pair", "pair", kind="external", actor="test")
    pairs = LabeledLogits(calibration().logits[:, :2], calibration().labels % 2)
    register_calibration(service.store, "pair", pairs, actor="test")
    # A poll of the test could meet one of the worker, and then reads nothing.
    eventually(
        lambda: service.client.post("/v1/logits", json={"logits": [[0, 1]], "model": "pair"}).is_success
    )
    column, row = [[1.5], [-0.25], [2]], [1.5, -0.25, 2]
    bodies: list[Any] = [[[0, 1.5], [0, -0.25], [0, 2]], column, row]
    answers = [
        service.client.post("/v1/logits", json={"logits": body, "model": "pair"}).json() for body in bodies
    ]
    assert len({str([one["probabilities"] for one in answer["predictions"]]) for answer in answers}) == 1
    for rows in (column, row):
        answer = service.client.post(
            "/v1/logits?model=pair",
            content=npy(np.array(rows)),
            headers={"Content-Type": "application/x-npy"},
        )
        assert len(answer.json()["predictions"]) == 3


def test_rows_just_below_and_above_the_limit(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(maximum_logits_rows=3)
    assert service.client.post("/v1/logits", json={"logits": [[1, 2, 3]] * 3}).status_code == 200
    answer = service.client.post("/v1/logits", json={"logits": [[1, 2, 3]] * 4})
    assert answer.status_code == 413
    assert "LIFELONG_MAXIMUM_LOGITS_ROWS" in answer.json()["error"]["hint"]


def test_a_large_request_is_parsed_beside_the_event_loop_and_logged_whole(service: Service) -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 3)).round(4).tolist()
    answer = service.client.post("/v1/logits", json={"logits": rows})
    assert len(answer.content) > 100_000
    assert service.logged() == len(answer.json()["predictions"]) == 5000


def test_bodies_just_below_and_above_the_limit(registered: None, serve: Callable[..., Service]) -> None:
    image = png(np.random.default_rng(0).integers(0, 255, (64, 64)), size=64)
    at_limit = serve(maximum_body_bytes=len(image))
    # The graph takes 4 x 4 only: the body has passed when the model complains.
    assert at_limit.client.post("/v1/predict", content=image).json()["error"]["field"] == "image"
    below = serve(maximum_body_bytes=len(image) - 1)
    answer = below.client.post("/v1/predict", content=image)
    assert answer.status_code == 413
    assert answer.headers["Connection"] == "close"
    assert answer.json()["error"]["hint"].endswith("LIFELONG_MAXIMUM_BODY_BYTES.")

    async def chunks():
        yield image[:100]
        yield image[100:]

    chunked = below.client.post("/v1/predict", content=chunks())
    assert "Content-Length" not in chunked.request.headers
    assert chunked.status_code == 413
    multipart = below.client.post("/v1/predict", files={"image": image})
    assert multipart.status_code == 413


def test_image_size_limit(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(maximum_image_pixels=16)
    assert service.client.post("/v1/predict", content=png()).status_code == 200
    assert service.client.post("/v1/predict", content=png(size=5)).status_code == 413


def test_a_bad_image_fails_only_its_own_request(service: Service) -> None:
    bodies = [png(value) for value in range(8)]
    bodies[3:3] = [b"text", png(1)[:-30], b""]
    answers = service.client.post_all("/v1/predict", bodies)
    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 200, 200, 422, 422, 422, 200, 200, 200, 200, 200]
    for answer in answers[3:6]:
        assert answer.json()["error"]["field"] == "image"
    assert service.logged() == 8


def test_nan_of_the_model_is_neither_answered_nor_logged(service: Service) -> None:
    answers = service.client.post_all("/v1/predict?model=nan", [png(250), png(0), png(200)])
    assert [answer.status_code for answer in answers] == [200, 422, 200]
    assert "the model gave NaN" in answers[1].json()["error"]["message"]
    assert service.logged() == 2


def test_when_a_batch_fails_only_the_guilty_request_does(service: Service) -> None:
    answers = service.client.post_all("/v1/predict?model=table", [png(10), png(255), png(20), png(30)])
    assert [answer.status_code for answer in answers] == [200, 422, 200, 200]
    assert service.logged() == 3


def test_a_bad_request_creates_no_environment(service: Service) -> None:
    service.client.post("/v1/predict?environment=ghost", content=b"text")
    assert "ghost" not in service.store.environments.list()


def test_json_answers_are_finite_json(service: Service) -> None:
    answer = service.client.post("/v1/logits", json={"logits": [[3e38, -3e38, 0]]})
    assert answer.status_code == 200
    json.loads(answer.content, parse_constant=lambda name: pytest.fail(f"{name} in the answer"))


def test_nothing_to_serve_yet(serve: Callable[..., Service]) -> None:
    answer = serve().client.post("/v1/predict", content=png())
    assert answer.status_code == 404
    assert answer.json()["error"]["field"] == "model"
