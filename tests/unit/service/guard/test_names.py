"""Every name of an environment, task or model in a request is checked; an illegal one changes nothing."""

from typing import Any

import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.values.errors import InvalidInputError
from tests.unit.service.conftest import Service
from tests.unit.service.routes.test_operations import error_of

NAMES = ("environment", "task", "name")
ILLEGAL = ("", "../x")
"""One that may count as missing, and one that is none: `check_name` has tests of its own."""
_PATHS = {
    "reference": "linear@1",
    "model": "linear@1",
    "proposal": "1",
    "prediction": "1",
    "task": "skin",
    "name": "default",
    "version": "1",
    "identifier": "1",
}


@pytest.fixture
def service(shared: Service) -> Service:
    return shared.counting_anew()


def _schema(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _entries(document: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """(method, path, query or body, field) of every name that a call takes."""
    found: list[tuple[str, str, str, str]] = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query" and parameter["name"] in NAMES:
                    found.append((method, path, "query", parameter["name"]))
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                schema = _schema(document, content["application/json"]["schema"])
                fields = schema.get("properties", {})
                found += [(method, path, "body", field) for field in NAMES if field in fields]
    return found


@pytest.mark.parametrize("illegal", ILLEGAL, ids=["empty", "path"])
def test_an_illegal_name_is_refused_wherever_it_enters(service: Service, illegal: str) -> None:
    entries = _entries(service.client.get("/openapi.json").json())
    assert len(entries) >= 12
    before = (service.store.revision(), service.store.environments.list(), len(service.store.audit.list(100)))
    for method, path, place, field in entries:
        url = path.format_map(
            dict.fromkeys(("cycle", "job", "id", "interview", "other", "version"), "1") | _PATHS
        )
        given: dict[str, Any] = (
            {"params": {field: illegal}} if place == "query" else {"json": {field: illegal}}
        )
        answer = service.client.request(method.upper(), url, **given)
        where = f"{method} {path} {place} {field}: {answer.status_code} {answer.text}"
        assert 400 <= answer.status_code < 500, where
        if place == "query" and path.startswith("/v1/admin") and method == "get":
            assert error_of(answer)["field"] == field, where
    after = (service.store.revision(), service.store.environments.list(), len(service.store.audit.list(100)))
    assert after == before


def test_an_environment_that_is_no_name_is_not_taken_for_the_default_head(service: Service) -> None:
    for illegal in ("", " "):
        for action in ("rollback", "unpin"):
            before = service.store.revision()
            answer = service.client.post(
                f"/v1/admin/models/linear/heads/{action}", json={"environment": illegal}
            )
            assert answer.status_code == 422
            assert "environment" in answer.text
            assert service.store.revision() == before


def test_an_illegal_name_is_refused_on_the_command_line() -> None:
    for command, illegal in (
        ("heads rollback net --environment", ""),
        ("heads unpin net --environment", ""),
        ("heads history net --environment", ""),
        ("cycles list --environment", ""),
        ("export --output log.csv", ""),
        ("models add --external --task skin", ""),
        ("tasks add --classes a,b", ""),
        ("tasks add --classes a,b", "../x"),
    ):
        with pytest.raises(InvalidInputError, match=r"legal name|name is empty"):
            CliRunner().invoke(cli, [*command.split(), illegal], catch_exceptions=False)
