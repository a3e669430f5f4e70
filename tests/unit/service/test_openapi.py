"""The description of the API covers every call, every body and every error."""

import json
from typing import Any

import httpx
import pytest

from tests.unit.service.conftest import Service
from tests.unit.service.documented import check_answer
from tests.unit.service.routes.test_operations import error_of


@pytest.fixture
def service(shared: Service) -> Service:
    return shared.counting_anew()


@pytest.mark.parametrize("path", ["/openapi.json", "/console/console.css"])
def test_a_client_that_has_a_document_does_not_get_it_again(service: Service, path: str) -> None:
    answer = service.client.get(path)
    tag = answer.headers["ETag"]
    assert answer.content
    for known in (tag, f'"other", W/{tag}', "*"):
        again = service.client.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert service.client.get(path, headers={"If-None-Match": '"other"'}).content == answer.content


def test_openapi_describes_every_call(service: Service) -> None:
    schema = service.client.get("/openapi.json").json()
    assert schema["paths"]["/v1/predict"]["post"]["x-scope"] == "predict"
    assert set(schema["paths"]["/v1/predict"]["post"]["requestBody"]["content"]) >= {
        "image/*",
        "multipart/form-data",
    }
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], f"{method} {path} is not described"


def test_a_token_is_optional_where_a_setting_lifts_the_need_for_it_by_default(service: Service) -> None:
    paths = service.client.get("/openapi.json").json()["paths"]
    metrics, predict = paths["/metrics"]["get"], paths["/v1/predict"]["post"]
    assert metrics["security"] == [{}, {"token": []}]
    assert (metrics["x-scope"], metrics["x-opened-by"]) == ("metrics", "LIFELONG_OPEN_METRICS")
    assert predict["security"] == [{"token": []}]
    assert (predict["x-scope"], predict["x-opened-by"]) == ("predict", "LIFELONG_OPEN_ACCESS")
    assert "security" not in paths["/livez"]["get"]


@pytest.mark.parametrize("path", ["/livez", "/metrics"])
def test_texts_are_of_the_media_type_that_is_described(service: Service, path: str) -> None:
    described = service.client.get("/openapi.json").json()["paths"][path]["get"]["responses"]["200"]
    (media_type,) = described["content"]
    answer = service.client.get(path)
    assert answer.headers["Content-Type"] in (media_type, f"{media_type}; charset=utf-8")


def test_every_reference_of_the_openapi_document_resolves(service: Service) -> None:
    document = service.client.get("/openapi.json").json()
    found: list[str] = []

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                found.append(node["$ref"])
            node = list(node.values())
        if isinstance(node, list):
            for part in node:
                collect(part)

    collect(document)
    names = {reference.rpartition("/")[2] for reference in found}
    assert names >= {
        "Error",
        "Label",
        "NewModel",
        "Preprocessing",
        "CentreCrop",
        "NewCalibrationSet",
        "NewHead",
        "LogitsBody",
        "Recommendation",
    }
    for reference in found:
        target = document
        assert reference.startswith("#/"), reference
        for part in reference[2:].split("/"):
            assert part in target, f"{reference} leads nowhere"
            target = target[part]


def test_every_operation_describes_our_error_body(service: Service) -> None:
    document = service.client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["responses"]["default"] == {"$ref": "#/components/responses/Error"}, path
            assert "422" not in operation["responses"], path
    schema = document["components"]["schemas"]["Error"]["properties"]["error"]
    assert set(schema["required"]) == set(error_of(service.client.get("/nothing")))
    assert set(schema["properties"]) == {*schema["required"], "details"}


def test_every_answer_has_a_type(service: Service) -> None:
    """The rule of `lifelong_service.schemas`: the return annotation of an endpoint names a typed dictionary."""
    document = service.client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            good = {status: one for status, one in operation["responses"].items() if status.startswith("2")}
            assert good, f"{method} {path} describes no good answer"
            for status, response in good.items():
                assert status == "204" or response["content"], f"{method} {path} has no media type"
                for kind, media in response.get("content", {}).items():
                    is_typed = bool({"$ref", "anyOf"} & set(media["schema"]))
                    assert is_typed == (kind == "application/json"), (
                        f"{method} {path} answers an untyped {kind}"
                    )
            for kind, media in operation.get("requestBody", {}).get("content", {}).items():
                assert media["schema"], f"{method} {path} takes an untyped {kind}"


def test_free_form_objects_say_what_they_hold(service: Service) -> None:
    bare: list[str] = []

    def look(node: Any, place: str) -> None:
        if isinstance(node, dict):
            is_free = node.get("type") == "object" and not {"properties", "$ref"} & set(node)
            if is_free and node.get("additionalProperties", True) is True and "description" not in node:
                bare.append(place)
            for name, part in node.items():
                is_described = name == "anyOf" and "description" in node
                look([] if is_described else part, f"{place}/{name}")
        elif isinstance(node, list):
            for index, part in enumerate(node):
                look(part, f"{place}/{index}")

    look(service.client.get("/openapi.json").json()["components"]["schemas"], "")
    assert bare == []


def test_an_answer_that_is_not_as_described_fails_the_tests(service: Service) -> None:
    """The positive control of `documented`, which compares the answers that all tests of this folder get."""
    answer = service.client.get("/v1/admin/environments")
    for wrong in (b'{"environments": [1]}', b'{"environments": [], "more": 1}', b"{}"):
        other = httpx.Response(200, json=json.loads(wrong), request=answer.request)
        with pytest.raises(AssertionError, match="otherwise than it is described"):
            check_answer(service.client.app, other)
    with pytest.raises(AssertionError, match="not described"):
        check_answer(service.client.app, httpx.Response(206, request=answer.request))
    with pytest.raises(AssertionError, match="not among"):
        check_answer(service.client.app, httpx.Response(200, html="<p>", request=answer.request))


def test_the_address_without_a_path_leads_to_the_console(service: Service) -> None:
    for method in ("GET", "HEAD"):
        answer = service.client.request(method, "/", headers={"Authorization": None})
        assert (answer.status_code, answer.headers["Location"]) == (307, "/console")
    assert service.client.get("/console/").headers["Location"] == "/console"


@pytest.mark.parametrize("path", ["/docs", "/docs.json", "/v1", "/schema.json", "/healthz", "/static/a.js"])
def test_other_addresses_lead_nowhere(service: Service, path: str) -> None:
    error = service.client.get(path)
    assert error.status_code == 404
    assert error_of(error)["field"] == "path"


def test_a_slash_too_many_is_named_and_never_redirected(service: Service) -> None:
    answer = service.client.post("/v1/predict/", content=b"x")
    assert answer.status_code == 404
    assert "slash" in error_of(answer)["hint"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/predict", "POST"),
        ("GET", "/v1/predict", "POST"),
        ("HEAD", "/v1/predict", "POST"),
        ("OPTIONS", "/v1/admin/tasks", "GET, HEAD, POST"),
        ("DELETE", "/livez", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_all_right_ones(
    service: Service, method: str, path: str, allowed: str
) -> None:
    answer = service.client.request(method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    if method != "HEAD":
        assert (error_of(answer)["field"], error_of(answer)["hint"]) == ("method", f"Use {allowed}.")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/v1/admin/tasks", "/console/login"])
def test_head_is_answered_wherever_get_is(service: Service, path: str) -> None:
    assert service.client.request("HEAD", path).status_code == 200
