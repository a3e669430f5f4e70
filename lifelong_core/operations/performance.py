"""Estimated beside realised performance of a population."""

from lifelong_core.entities.access import Scope
from lifelong_core.entities.performance import PerformanceAnswer
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.store.performance.statements import not_computed, performance_answer


class ShowPerformance(Call[PerformanceAnswer]):
    """A population."""

    model: ModelReference
    environment: str


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
        raise not_computed(model.reference, name)
    return performance_answer(performance, model=model.reference, environment=name)
