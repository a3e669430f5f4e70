"""Schemas by the import path of a pydantic model: the model is imported when the OpenAPI document is made."""

import importlib
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from lifelong_core.entities.entity import MODEL_KEY

_TEMPLATE = "#/components/schemas/{model}"


def resolve_references(document: dict[str, Any]) -> None:
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
