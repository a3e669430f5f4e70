"""The description of the API covers every call, every body and every error."""

from typing import Any

from tests.unit.service.conftest import Service
from tests.unit.service.test_operations import error_of


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
    assert set(schema["properties"]) == set(error_of(service.client.get("/nothing")))
