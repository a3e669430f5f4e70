"""Unknown form fields, repeated parameters, and values that no answer can hold are refused, never ignored."""

import json
import re
from typing import Any

import pytest

from tests.unit.service.conftest import COSTS, GREY, Service, calibration, png
from tests.unit.service.onnx_graphs import linear
from tests.unit.service.routes.test_operations import error_of

HEADERS = {"Content-Type": "application/json"}


@pytest.fixture
def service(shared: Service) -> Service:
    return shared.counting_anew()


def test_lone_surrogates_nan_and_nul_are_refused(service: Service) -> None:
    for path, body in (
        ("tasks", b'{"name": "surr", "classes": ["\\ud800", "b"], "costs": [[0, 1], [1, 0]]}'),
        ("tasks", b'{"name": "surr", "classes": ["a", "b"], "costs": [[0, NaN], [1, 0]]}'),
        ("tokens", b'{"name": "\\udfff", "scopes": ["read"]}'),
        ("models", b'{"task": "skin", "name": "\\ud800", "kind": "external"}'),
        ("models/linear/heads/rollback", b'{"environment": "\\ud800"}'),
        ("models/linear/heads/rollback", b'{"environment": "\\u0000"}'),
        ("tasks", b'{"name": "surr", "classes": ["a\\u0000", "b"], "costs": [[0, 1], [1, 0]]}'),
        ("models/linear/heads", b'{"head": {"provenance": {"\\ud800": 1}}}'),
        ("models/linear/calibration-sets", b'{"logits": [[1, 2, 3]], "labels": [0], "groups": ["\\ud800"]}'),
    ):
        answer = service.client.post(f"/v1/admin/{path}", content=body, headers=HEADERS)
        assert answer.status_code == 422
        error = error_of(answer)
        assert error["field"] == "body"
        assert "json" in error["message"].lower()
        for listed in ("tasks", "tokens", "models"):
            assert service.client.get(f"/v1/admin/{listed}").status_code == 200


def test_a_head_whose_provenance_holds_a_lone_surrogate_is_refused(service: Service) -> None:
    head: dict[str, Any] = service.client.get("/v1/admin/models/linear/heads/1").json()["head"]
    body = json.dumps({"head": head | {"provenance": {"note": "\ud800"}}}).encode()
    answer = service.client.post("/v1/admin/models/linear/heads", content=body, headers=HEADERS)
    assert answer.status_code == 422
    assert error_of(answer)["field"] == "body"
    assert service.client.get("/v1/admin/models/linear/heads").status_code == 200


def test_whole_surrogate_pairs_are_taken(service: Service) -> None:
    costs = str(COSTS[0][:2]), str(COSTS[1][:2])
    body = (
        f'{{"name": "pair", "classes": ["\\ud83d\\ude00", "b"], "costs": [{costs[0]}, {costs[1]}]}}'.encode()
    )
    answer = service.client.post("/v1/admin/tasks", content=body, headers=HEADERS)
    assert answer.status_code == 201
    assert answer.json()["classes"] == ["\U0001f600", "b"]


def test_nul_in_an_address_names_the_field(service: Service) -> None:
    for path in ("models/%00/heads", "cycles?environment=%00", "cycles?model=%00"):
        answer = service.client.get(f"/v1/admin/{path}")
        assert answer.status_code == 422
        assert error_of(answer)["field"] in ("model", "reference", "environment")


def test_the_text_that_only_looks_like_nul_is_taken(service: Service) -> None:
    body = b'{"name": "slash", "classes": ["a", "b"], "costs": [[1, 0], [0, 1]], "force_reason": "\\\\u0000"}'
    answer = service.client.post("/v1/admin/tasks", content=body, headers=HEADERS)
    assert answer.status_code == 201
    assert service.store.audit.list(1)[0].details["force_reason"] == r"\u0000"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("tasks", {f"field_{index}": 1 for index in range(1000)}),
        ("tasks", {"name": "a", "classes": ["a", "b"], "costs": [["x"] * 1000] * 2}),
        ("models/linear/calibration-sets", {"logits": [["x"] * 1000] * 10, "labels": ["x"] * 1000}),
    ],
)
def test_of_a_thousand_mistakes_only_the_first_are_looked_at(
    service: Service, path: str, body: dict[str, Any]
) -> None:
    """pydantic keeps each mistake that it finds, with its place: a large body would take gigabytes."""
    error = error_of(service.client.post(f"/v1/admin/{path}", json=body))
    more = re.search(r"and (\d+) more problem", error["message"])
    assert more is None or int(more[1]) <= 5, error


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
