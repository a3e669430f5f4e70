"""Unknown form fields and repeated parameters are refused, never ignored."""

import json
from typing import Any

import pytest

from tests.unit.service.conftest import GREY, Service, calibration, png
from tests.unit.service.onnx_graphs import linear
from tests.unit.service.routes.test_operations import error_of


@pytest.fixture
def service(shared: Service) -> Service:
    return shared.counting_anew()


def test_a_form_field_that_would_be_ignored_is_refused(service: Service) -> None:
    for field in ("environment", "group", "colour"):
        answer = service.client.post(
            "/v1/predict", data={field: "site-a"}, files={"image": ("a.png", png(), "image/png")}
        )
        assert answer.status_code == 422
        error = error_of(answer)
        assert error["field"] == field
        assert "query" in error["hint"]
        assert "X-Lifelong-Environment" in error["hint"]
        assert service.logged() == 0


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("models/linear/logits", {"images": png()}),
        ("models/linear/calibration-sets", {"calibration_set": calibration().to_bytes()}),
        (
            "models",
            {
                "document": json.dumps(
                    {"task": "skin", "name": "new", "preprocessing": GREY.model_dump(mode="json")}
                ),
                "onnx": linear(),
            },
        ),
    ],
)
def test_administrators_forms(service: Service, path: str, files: dict[str, Any]) -> None:
    refused = service.client.post(f"/v1/admin/{path}", data={"environment": "a"}, files=files)
    assert refused.status_code == 422
    assert error_of(refused)["field"] == "environment"
    assert service.client.post(f"/v1/admin/{path}", files=files).status_code < 300


def test_a_form_field_that_is_given_twice_is_refused(service: Service) -> None:
    answer = service.client.post(
        "/v1/admin/models", files=[("document", (None, b"{}")), ("document", (None, b"{}"))]
    )
    assert answer.status_code == 422
    assert error_of(answer)["field"] == "document"


def test_a_parameter_that_is_given_twice_is_refused(service: Service) -> None:
    for method, path, field in (
        ("POST", "/v1/predict?environment=a&environment=b", "environment"),
        ("GET", "/v1/admin/audit?limit=1&limit=2", "limit"),
    ):
        answer = service.client.request(method, path, content=png() if method == "POST" else None)
        assert answer.status_code == 422
        assert error_of(answer)["field"] == field
