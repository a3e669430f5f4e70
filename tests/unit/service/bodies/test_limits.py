"""Memory of a request body is bounded, whatever its content; refusals name the limit."""

import gzip
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel

from lifelong_core.design import ProblemFingerprint, Recommendation
from lifelong_core.design.interview.interview import Interview
from lifelong_core.values.documents import LISTS, FailFastModel
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_service.application import create_application
from lifelong_service.bodies.json_documents import parse_document
from lifelong_service.openapi import _BODIES  # pyright: ignore[reportPrivateUsage]
from lifelong_service.routes.admin.validations import NewLabelledSet
from lifelong_service.routes.labelled_bodies import LabelledRows, check_columns
from lifelong_service.routes.prediction_requests import LogitsBody
from lifelong_service.schemas.labels import Labels
from tests.attacks.json_bombs import documents, documents_at_limits
from tests.unit.service.conftest import Service, Settings, calibration, png
from tests.unit.service.routes.test_operations import error_of

JSON = {"Content-Type": "application/json"}
LOGITS = b'{"logits": [[1, 2, 3]]'


@pytest.fixture
def service(shared: Service) -> Service:
    return shared.counting_anew()


def padded(body: bytes, size: int) -> bytes:
    return body + b" " * (size - len(body))


def test_json_just_below_and_above_its_limit(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(maximum_json_bytes=20_000)
    for path, body, status, kind in (
        ("/v1/logits", LOGITS + b"}", 200, "application/x-npy"),
        ("/v1/admin/models/linear/calibration-sets", b"{}", 422, "application/x-npz"),
        ("/v1/admin/tokens", b'{"name": "t", "scopes": ["read"]}', 201, ""),
        ("/v1/feedback", b'{"labels": []}', 422, ""),
    ):
        assert service.client.post(path, content=padded(body, 20_000), headers=JSON).status_code == status
        answer = service.client.post(path, content=padded(body, 20_001), headers=JSON)
        assert answer.status_code == 413
        error = error_of(answer)
        assert "LIFELONG_MAXIMUM_JSON_BYTES" in error["hint"]
        assert kind in error["hint"]


def test_arrays_and_images_may_be_larger_than_json(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(maximum_json_bytes=500)
    file = BytesIO()
    np.save(file, np.zeros((100, 3)))
    npy = {"Content-Type": "application/x-npy"}
    assert service.client.post("/v1/logits", content=file.getvalue(), headers=npy).status_code == 200
    noise = png(np.random.default_rng(0).integers(0, 255, (100, 100)), size=100)
    assert service.client.post("/v1/predict", content=noise).status_code != 413
    npz = {"Content-Type": "application/x-npz"}
    path, content = "/v1/admin/models/linear/calibration-sets", calibration(5).to_bytes()
    assert service.client.post(path, content=content, headers=npz).status_code == 201
    assert service.client.post(path, content=content).status_code == 201  # no type is declared: npz


def test_too_many_parts(service: Service) -> None:
    body = b"{" + b",".join(b'"%d":0' % name for name in range(10_001)) + b"}"
    for path in ("/v1/logits", "/v1/feedback", "/v1/admin/tasks", "/v1/admin/models"):
        answer = service.client.post(path, content=body, headers=JSON)
        assert answer.status_code == 413
        assert error_of(answer)["field"] == "body"
        assert "10001 names" in error_of(answer)["message"]


@pytest.mark.parametrize("document", [LogitsBody, Labels, NewLabelledSet])
def test_no_document_takes_more_than_some_megabytes(document: type[BaseModel]) -> None:
    for name, body in (documents(300_000) | documents_at_limits()).items():
        tracemalloc.start()
        try:
            parse_document(body, document)
        except InvalidInputError:
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 60_000_000, name


def lists_in(schema: object) -> Iterator[dict[str, Any]]:
    """The lists in a schema that check their elements."""
    if isinstance(schema, dict):
        if schema.get("type") in LISTS:
            yield schema
        for part in schema.values():
            yield from lists_in(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            yield from lists_in(part)


def test_no_list_of_a_request_keeps_an_error_for_each_element(settings: Settings) -> None:
    app = create_application(settings)
    bodies = {
        route.body_field.field_info.annotation
        for route in app.routes
        if isinstance(route, APIRoute) and route.body_field is not None
    }
    models = [model for model in bodies if isinstance(model, type) and issubclass(model, BaseModel)]
    models += [LogitsBody, LabelledRows, *_BODIES, ProblemFingerprint, Recommendation, Interview]
    assert len(models) > 15
    found = 0
    for model in models:
        assert issubclass(model, FailFastModel)
        for one in lists_in(model.__pydantic_core_schema__):
            found += 1
            assert one["fail_fast"], model
    assert found > 20


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/logits", {"logits": [["a" * 100_000] + [""] * 100_000]}),
        (
            "/v1/admin/tasks",
            {"name": "n", "classes": ["a", "b"], "costs": [["a" * 100_000] + [""] * 100_000]},
        ),
        ("/v1/admin/models/linear/heads", {"head": {"bias": ["a" * 100_000] + [""] * 100_000}}),
    ],
)
def test_texts_among_numbers(service: Service, path: str, body: dict[str, Any]) -> None:
    """As an array they would take 40 GB."""
    assert service.client.post(path, json=body).status_code == 422


def test_a_head_with_texts_for_numbers(service: Service) -> None:
    head = service.client.get("/v1/admin/models/linear/heads/1").json()["head"]
    wrong = head | {"bias": ["a" * 100_000] + [""] * 100_000}
    answer = service.client.post("/v1/admin/models/linear/heads", json={"head": wrong})
    assert answer.status_code == 422
    assert "bias" in error_of(answer)["field"]


def test_columns_of_texts_take_as_much_as_the_longest() -> None:
    check_columns({"groups": ["a" * 50, "b"], "metadata.scanner": None}, 400)
    with pytest.raises(PayloadTooLargeError, match="groups"):
        check_columns({"groups": ["a" * 50, "b", "c"]}, 400)
    with pytest.raises(PayloadTooLargeError, match="second"):
        check_columns({"first": ["a" * 50], "second": ["a" * 51]}, 400)


def test_compressed_bodies_are_refused(service: Service) -> None:
    for coding in ("gzip", "deflate", "br", "GZIP, identity", "x" * 200):
        headers = {**JSON, "Content-Encoding": coding}
        answer = service.client.post("/v1/logits", content=gzip.compress(LOGITS + b"}"), headers=headers)
        assert answer.status_code == 415
        assert error_of(answer)["field"] == "Content-Encoding"


def test_the_coding_identity_is_none(service: Service) -> None:
    headers = {**JSON, "Content-Encoding": "identity"}
    assert service.client.post("/v1/logits", content=LOGITS + b"}", headers=headers).status_code == 200


def test_no_answer_lets_browsers_guess_its_type(service: Service) -> None:
    for method, path in (
        ("GET", "/livez"),
        ("GET", "/metrics"),
        ("GET", "/nothing"),
        ("PUT", "/livez"),
        ("POST", "/v1/logits"),
        ("GET", "/openapi.json"),
        ("GET", "/console/login"),
        ("GET", "/console/nothing"),
    ):
        assert service.client.request(method, path).headers.get_list("X-Content-Type-Options") == ["nosniff"]


def test_a_form_with_many_headers(service: Service) -> None:
    body = b"--x\r\n" + b"a: b\r\n" * 100_000
    answer = service.client.post(
        "/v1/predict", content=body, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 400


def test_an_npz_in_a_form_is_limited_too(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(maximum_labelled_bytes=10_000)
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("logits.npy", bytes(20_000))
    path = "/v1/admin/models/linear/calibration-sets"
    answer = service.client.post(path, files={"calibration_set": file.getvalue()})
    assert answer.status_code == 413
    assert "LIFELONG_MAXIMUM_LABELLED_BYTES" in error_of(answer)["hint"]
