"""The OpenAPI document: routes, bodies that endpoints read themselves, and errors."""

import importlib
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.entity import MODEL_KEY
from lifelong_core.operations.develop.retrainings import NewRetraining
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.calibration_sets import NewCalibrationSet
from lifelong_service.routes.admin.fingerprints import NewFingerprint
from lifelong_service.routes.admin.model_uploads import NewModel
from lifelong_service.routes.admin.promotion_reports import NewPairedSet
from lifelong_service.routes.admin.retrainings import NewAugmentationSearch
from lifelong_service.routes.admin.validations import NewLabelledSet
from lifelong_service.routes.prediction_requests import LogitsBody
from lifelong_service.schemas.labels import Label, Labels

_BODIES = (
    Label,
    Labels,
    LogitsBody,
    NewAugmentationSearch,
    NewCalibrationSet,
    NewFingerprint,
    NewLabelledSet,
    NewModel,
    NewPairedSet,
    NewRetraining,
)
"""Request bodies that endpoints parse themselves, named `#/components/schemas/{class}`."""

_TEMPLATE = "#/components/schemas/{model}"
_TEXT_OR_NULL = {"type": ["string", "null"]}
_ERROR: dict[str, Any] = {
    "type": "object",
    "description": "What was wrong, where, and how to fix it.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "field", "message", "hint"],
            "properties": {
                "code": {"type": "string"},
                "field": _TEXT_OR_NULL,
                "message": {"type": "string"},
                "hint": _TEXT_OR_NULL,
                "details": {
                    "type": "object",
                    "description": "Figures behind the message; of some errors only.",
                },
            },
        }
    },
}
_FAILED: dict[str, Any] = {
    "description": "The request was not carried out; the body says why.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document with the scope of each call; it is built once per application."""
    if app.openapi_schema is None:
        app.openapi_schema = _document(app)
    return app.openapi_schema


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        routes=[route.described if isinstance(route, GuardedRoute) else route for route in app.routes],
        tags=app.openapi_tags,
        servers=app.servers or None,
    )
    components = document.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    _, bodies = models_json_schema([(body, "validation") for body in _BODIES], ref_template=_TEMPLATE)
    schemas = components.setdefault("schemas", {})
    schemas |= bodies["$defs"]
    for name in ("HTTPValidationError", "ValidationError"):  # the framework's own error bodies are never sent
        schemas.pop(name, None)
    _resolve_references(document)
    schemas["Error"] = _ERROR
    components["responses"] = {"Error": _FAILED}
    for route in app.routes:
        if isinstance(route, GuardedRoute) and route.include_in_schema:
            for method in route.methods or ():
                _complete(document["paths"][route.path_format][method.lower()], route)
    return document


def _complete(operation: dict[str, Any], route: GuardedRoute) -> None:
    operation["responses"].pop("422", None)
    operation["responses"]["default"] = {"$ref": "#/components/responses/Error"}
    if route.access.scope is not None:
        operation["security"] = [{"token": []}]
        operation["x-scope"] = route.access.scope.value
    if (opens := route.access.opens) is not None:
        operation["x-opened-by"] = f"LIFELONG_{opens.upper()}"
        if Settings.model_fields[opens].default:  # a token is optional then
            operation["security"].insert(0, {})


def _resolve_references(document: dict[str, Any]) -> None:
    """Replace the markers of `schema_of` in an OpenAPI document by references, and add the schemas to it."""
    models: dict[str, type[BaseModel]] = {}
    _replace(document, models)
    _, found = models_json_schema(
        [(model, "serialization") for model in models.values()], ref_template=_TEMPLATE
    )
    schemas = document["components"]["schemas"]
    for name, schema in found.get("$defs", {}).items():
        if schemas.setdefault(name, schema) != schema:
            raise TypeError(f"two schemas have the name {name}")


def _replace(node: Any, models: dict[str, type[BaseModel]]) -> None:
    if isinstance(node, dict):
        path = node.pop(MODEL_KEY, None)
        if path is not None:
            module, _, name = path.partition(":")
            models[path] = getattr(importlib.import_module(module), name)
            node.pop("title", None)
            node["$ref"] = _TEMPLATE.format(model=name)
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for part in parts:
        _replace(part, models)
