"""The routes of the operations: one for each, made from its declaration (`lifelong_core.operations`)."""

import json
from collections.abc import Iterable
from importlib.resources import files
from inspect import Parameter, Signature
from types import ModuleType
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import create_model
from pydantic.fields import FieldInfo
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lifelong_core import operations
from lifelong_core.entities.entity import document_of
from lifelong_core.operations import (
    calibration_sets,
    cycles,
    feedback,
    head_differences,
    heads,
    labelling_plans,
    models,
    performance,
    populations,
    predictions,
    proposals,
    tasks,
    trials,
)
from lifelong_core.operations.administration import (
    audit,
    change_control,
    doctor,
    environments,
    groups,
    jobs,
    notifications,
    processes,
    tokens,
)
from lifelong_core.operations.design import interviews, recommendations
from lifelong_core.operations.develop import evaluations, knowledge, retrainings
from lifelong_core.operations.operation import CsvFile, Operation, operations_of
from lifelong_core.values.documents import RequestDocument
from lifelong_service.bodies.parameters import check_parameters
from lifelong_service.guard.access import access, context_of
from lifelong_service.guard.route import GuardedRoute

MODULES: tuple[ModuleType, ...] = (
    tasks,
    models,
    trials,
    calibration_sets,
    cycles,
    heads,
    head_differences,
    performance,
    populations,
    environments,
    tokens,
    processes,
    doctor,
    notifications,
    jobs,
    proposals,
    retrainings,
    labelling_plans,
    knowledge,
    predictions,
    feedback,
    groups,
    audit,
    change_control,
    interviews,
    recommendations,
    evaluations,
)
"""The modules of operations that are served, in the order of the description of the API."""

_JSON = "application/json"
_CSV = "text/csv"
_ANSWERS: dict[str, Any] = json.loads(files(operations).joinpath("examples.json").read_text(encoding="utf-8"))
"""The answer to the example of each operation, by the name of the operation; a test makes and compares them."""


def operation_router(declared: Iterable[Operation[Any]]) -> APIRouter:
    """The routes of operations; each carries its operation out in the store of the worker."""
    router = APIRouter(route_class=GuardedRoute)
    for operation in declared:
        router.add_api_route(
            operation.path,
            access(operation.scope)(_endpoint(operation)),
            methods=[operation.method],
            status_code=operation.status,
            tags=[operation.tag],
            openapi_extra=_request_example(operation),
            responses=_response_example(operation),
        )
    return router


def _endpoint(operation: Operation[Any]) -> Any:
    """A function whose signature tells the framework what to read; what was read becomes the call."""

    def endpoint(request: Request, **given: Any) -> Response:
        if operation.is_strict or (operation.method == "POST" and operation.query_fields):
            # An ignored parameter would do harm.
            check_parameters(request.query_params, operation.query_fields)
        body = given.pop("body", None)
        if body is not None:
            given |= {name: getattr(body, name) for name in body.model_fields_set}
        call = operation.call.read(given, is_request=True)
        context = context_of(request)
        answer = operation(context, call)
        if operation.answer is None:
            return Response(status_code=operation.status)
        if operation.csv is not None and _wants_csv(request):
            return csv_response(operation.csv(context, answer))
        document = document_of(answer, operation.answer)
        headers = (
            None if operation.location is None else {"Location": operation.location.format_map(document)}
        )
        return JSONResponse(document, operation.status, headers)

    endpoint.__name__ = operation.name
    endpoint.__doc__ = operation.description
    endpoint.__signature__ = Signature(  # pyright: ignore[reportFunctionMemberAccess]
        _parameters(operation), return_annotation=Response if operation.answer is None else operation.answer
    )
    return endpoint


def _request_example(operation: Operation[Any]) -> dict[str, Any] | None:
    if not operation.body_fields:
        return None
    given = operation.example.model_dump(mode="json", exclude_unset=True, include=set(operation.body_fields))
    return {"requestBody": {"content": {_JSON: {"example": given}}}}


def _response_example(operation: Operation[Any]) -> dict[int | str, dict[str, Any]] | None:
    if operation.answer is None:
        return None
    described: dict[str, Any] = {
        "model": operation.answer,
        "content": {_JSON: {"example": _ANSWERS.get(operation.name)}},
    }
    if operation.csv is not None:
        described["description"] = "JSON, or CSV for a client that accepts text/csv only or names it first."
        described["content"][_CSV] = {"schema": {"type": "string"}}
    return {operation.status: described}


def csv_response(file: CsvFile) -> Response:
    """A CSV file to download."""
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
    return Response(file.content, media_type=_CSV, headers=headers)


def _wants_csv(request: Request) -> bool:
    return request.headers.get("accept", "").partition(",")[0].partition(";")[0].strip() == _CSV


def _parameters(operation: Operation[Any]) -> list[Parameter]:
    fields = operation.call.model_fields
    parameters = [Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request)]
    parameters += [_parameter(name, fields[name], Path) for name in operation.path_fields]
    parameters += [_parameter(name, fields[name], Query) for name in operation.query_fields]
    if operation.body_fields:
        body: Any = _body(operation)
        missing: Any = Parameter.empty
        if operation.has_body == "optional":
            body, missing = body | None, None
        parameters.append(Parameter("body", Parameter.KEYWORD_ONLY, annotation=body, default=missing))
    return parameters


def _parameter(name: str, field: FieldInfo, place: Any) -> Parameter:
    source = place(description=field.description)
    default = Parameter.empty if field.is_required() else field.default
    annotation = Annotated[field.annotation, *field.metadata, source]  # pyright: ignore[reportInvalidTypeForm]
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _body(operation: Operation[Any]) -> type[RequestDocument]:
    """The call without the fields that are parts of the path; of the same name."""
    if not operation.path_fields:
        return operation.call
    fields: dict[str, Any] = {
        name: (field.annotation, field)
        for name, field in operation.call.model_fields.items()
        if name in operation.body_fields
    }
    return create_model(
        operation.call.__name__,
        __base__=RequestDocument,
        __doc__=operation.call.__doc__,
        __module__=operation.call.__module__,
        **fields,
    )


router = operation_router(operation for module in MODULES for operation in operations_of(module))
