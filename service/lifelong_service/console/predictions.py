"""The pages of predictions: find them; the way of one from its logits to its decision."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.predictions import DecisionPath, PredictionDetails, PredictionList
from lifelong_core.operations.administration.environments import ListEnvironments
from lifelong_core.operations.models import ListModels
from lifelong_core.operations.predictions import ListPredictions, ShowPrediction
from lifelong_core.values.errors import InvalidInputError, LifelongError, NotFoundError
from lifelong_service.console.pages import page, see_other
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out
from lifelong_service.guard.errors import error_response

PAGE = "/console/predictions"
_FIELDS = ("model", "environment", "since", "until", "decision", "labelled", "find", "before")
_MOST_TYPED = 100
_MOST = 25
"""Predictions on a page."""
_MOST_CLASSES = 12
"""Classes of a prediction whose numbers are shown: those of the largest probability."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(PAGE)
@access(ListPredictions.operation.scope)
def list_predictions(request: Request) -> Response:
    """Show a page of predictions, newest first; the id of a prediction leads to it."""
    typed = {name: request.query_params.get(name, "").strip()[:_MOST_TYPED] for name in _FIELDS}
    given = {name: value for name, value in typed.items() if value}
    if (identity := _as_id(typed["find"])) is not None:
        return see_other(f"{PAGE}/{identity}")
    found: PredictionList | None = None
    error: LifelongError | None = None
    status = 200
    try:
        found = carry_out(request, ListPredictions.read({**_call(given), "limit": _MOST}, is_request=True))
    except (InvalidInputError, NotFoundError) as refused:
        error, status = refused, error_response(refused).status_code
    older = None if found is None or found.next is None else urlencode({**given, "before": str(found.next)})
    return page(
        request,
        "predictions",
        status=status,
        found=found,
        older=older,
        error=error,
        typed=typed,
        is_one_population=bool(typed["model"] and typed["environment"]),
        models=[model.model for model in carry_out(request, ListModels()).models],
        environments=carry_out(request, ListEnvironments()).environments,
    )


@router.get(PAGE + "/{identifier}")
@access(ShowPrediction.operation.scope)
def show_prediction(request: Request, identifier: UUID) -> Response:
    """Show a prediction: decision, label, and the way under the head that decided and under the active one."""
    one = carry_out(request, ShowPrediction(prediction=identifier))
    return page(request, "prediction", one=one, ways=_ways(one))


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _call(given: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the operation: times are in UTC, what is no id of a prediction is one of a request."""
    call: dict[str, Any] = {name: value for name, value in given.items() if name != "find"}
    for name in call.keys() & {"since", "until"}:
        call[name] = call[name] if call[name].endswith("Z") else f"{call[name]}Z"
    return {**call, "request_id": given["find"]} if "find" in given else call


def _ways(one: PredictionDetails) -> list[dict[str, Any]]:
    """The way under each head, as rows of a table."""
    same = one.decided is not None and one.active == one.decided
    titles = (
        [("decided", one.decided)] if same else [("decided", one.decided), ("is in force now", one.active)]
    )
    return [{"title": title, "path": path, "rows": _steps(one, path)} for title, path in titles]


def _steps(one: PredictionDetails, path: DecisionPath | None) -> list[dict[str, Any]]:
    """Each class with its numbers, most probable first, and decisions that are no class."""
    if path is None:
        return []
    classes = len(one.class_names)
    shown = sorted(range(classes), key=lambda index: -path.probabilities[index])[:_MOST_CLASSES]
    rows = [
        {
            "name": one.class_names[index],
            "logit": one.logits[index],
            "scaled": path.scaled[index],
            "probability": path.probabilities[index],
            "cost": path.expected_costs[index],
            "is_decided": index == path.decision,
        }
        for index in shown
    ]
    for index in range(classes, len(path.expected_costs)):
        costs = {"cost": path.expected_costs[index], "is_decided": index == path.decision}
        rows.append(
            {"name": one.decision_names[index], "logit": None, "scaled": None, "probability": None, **costs}
        )
    return rows
