"""Compares each answer of the tests with the OpenAPI document."""

import copy
from functools import cache
from typing import Any

import httpx
from fastapi import FastAPI
from jsonschema import Draft202012Validator
from starlette.routing import Match

from lifelong_service.guard.route import GuardedRoute


def operation_of(app: FastAPI, method: str, path: str) -> tuple[str, str] | None:
    """The (method, path) of the document that describes a call; None: it describes none."""
    method = "GET" if method == "HEAD" else method
    for route in app.routes:
        scope = {"type": "http", "method": method, "path": path, "headers": []}
        if route.matches(scope)[0] is Match.FULL:
            is_described = isinstance(route, GuardedRoute) and route.include_in_schema
            return (method, route.path_format) if is_described else None
    return None


def check_answer(app: FastAPI, answer: httpx.Response) -> None:
    """Fail where the document says something else about an answer."""
    request = answer.request
    operation = operation_of(app, request.method, request.url.path)
    if operation is None or request.method == "HEAD":
        return
    described = _responses(_strict_document(app), *operation)
    status = str(answer.status_code)
    is_error = answer.status_code >= 400 and status not in described
    assert is_error or status in described, f"{operation} answers {status}, which is not described"
    response = described["default" if is_error else status]
    if "content" not in response:
        assert not answer.content, f"{operation} answers {status} with a body that is not described"
        return
    kinds = {kind.replace(" ", ""): media["schema"] for kind, media in response["content"].items()}
    kind = answer.headers["content-type"].replace(" ", "")
    kind = kind if kind in kinds else kind.partition(";")[0]
    assert kind in kinds, f"{operation} answers {status} as {kind}, which is not among {list(kinds)}"
    if kind == "application/json":
        errors = [
            f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in _validator(*operation, "default" if is_error else status).iter_errors(answer.json())
        ]
        assert not errors, f"{operation} answers {status} otherwise than it is described: {errors[:3]}"


def _responses(document: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    responses = document["paths"][path][method.lower()]["responses"]
    return {
        status: document["components"]["responses"]["Error"] if "$ref" in response else response
        for status, response in responses.items()
    }


_documents: list[dict[str, Any]] = []


def _strict_document(app: FastAPI) -> dict[str, Any]:
    """The document, with objects that hold only what it names; one for all applications: they have the same routes."""
    if not _documents:
        document = copy.deepcopy(app.openapi())
        _close(document["components"])
        _documents.append(document)
    return _documents[0]


def _close(node: Any) -> None:
    if isinstance(node, dict):
        if "properties" in node:
            node.setdefault("additionalProperties", False)
        for part in node.values():
            _close(part)
    elif isinstance(node, list):
        for part in node:
            _close(part)


@cache
def _validator(method: str, path: str, status: str) -> Draft202012Validator:
    document = _documents[0]
    response = _responses(document, method, path)[status]
    schema = response["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": document["components"]})
