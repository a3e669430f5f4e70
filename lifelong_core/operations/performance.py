"""Estimated beside realised performance of populations."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.performance import PerformanceAnswer, PerformanceSummary
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.store import Store
from lifelong_core.store.performance.statements import (
    NotComparedError,
    describe_comparison,
    performance_answer,
)
from lifelong_core.values.errors import UnavailableError


@dataclass(frozen=True, kw_only=True)
class PerformanceList(Entity):
    """Populations with a comparison, by model and environment."""

    populations: list[PerformanceSummary]
    more: int
    """further populations, which `limit` left out"""


class ListPerformance(Call[PerformanceList]):
    """How many populations are wanted."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class ShowPerformance(Call[PerformanceAnswer]):
    """A population."""

    model: ModelReference
    environment: str


@operation("GET", "/v1/admin/performance", scope=Scope.READ, example=ListPerformance())
def list_performance(context: Context, call: ListPerformance) -> PerformanceList:
    """The populations whose performance was estimated or counted, each with its newest comparison in words."""
    store = context.store
    references = {model.id: model.reference for model in store.models.list()}
    known = sorted(
        (references[model_id], environment, model_id)
        for model_id, environment in store.performance.populations()
        if model_id in references
    )
    return PerformanceList(
        populations=[
            PerformanceSummary(
                model=model, environment=environment, statements=_statements(store, model_id, environment)
            )
            for model, environment, model_id in known[: call.limit]
        ],
        more=max(0, len(known) - call.limit),
    )


@operation(
    "GET",
    "/v1/admin/populations/{model}/{environment}/performance",
    scope=Scope.READ,
    example=ShowPerformance(model="resnet", environment="clinic-a"),
)
def show_performance(context: Context, call: ShowPerformance) -> PerformanceAnswer:
    """Estimated beside realised performance of a population: by day and head version, with intervals and agreement.

    Estimates without labels are those of the cycles; realised figures are of the predictions with a label, as they were
    answered. A monitor computes this about a minute after new labels or a new cycle. `days` compares by UTC day,
    `heads` over all days of a head version; `statements` says the newest comparison in words.
    """
    store = context.store
    model, name = store.models.get(call.model), store.environments.get(call.environment).name
    performance = store.performance.get(model.id, name)
    if performance is None:
        raise NotComparedError(model.reference, name)
    return performance_answer(performance, model=model.reference, environment=name)


def _statements(store: Store, model_id: int, environment: str) -> list[str]:
    """Statements of the newest comparison; a damaged one stays in the list."""
    try:
        performance = store.performance.get(model_id, environment)
    except UnavailableError as error:
        return [str(error)]
    return [] if performance is None else describe_comparison(performance)
