"""Past cycles and their proposals: list, show, approve, reject."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.cycles import Cycle, CycleAnswer, Outcome
from lifelong_core.entities.entity import Entity
from lifelong_core.operations.operation import Call, Context, operation
from lifelong_core.store import Store
from lifelong_core.store.cycles.documents import figures_document
from lifelong_core.values.names import Name

_EXAMPLE = UUID("01a20676-ec35-71e3-9541-7358988905de")


@dataclass(frozen=True, kw_only=True)
class CycleList(Entity):
    """Cycles, newest first."""

    cycles: list[CycleAnswer]


class ListCycles(Call[CycleList]):
    """Which cycles are wanted."""

    model: Annotated[str | None, Field(description="Only of this model: its name, or name@version.")] = None
    environment: Annotated[Name | None, Field(description="Only of this environment.")] = None
    outcome: Outcome | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    open_proposals: Annotated[
        bool, Field(description="Only those whose proposed head can be approved now.")
    ] = False


class ShowCycle(Call[CycleAnswer]):
    """A cycle."""

    cycle: UUID


class ApproveCycle(Call[CycleAnswer]):
    """A cycle that proposed a head."""

    cycle: UUID


class RejectCycle(Call[CycleAnswer]):
    """Reason against a proposed head, 1 to 200 printable characters."""

    cycle: UUID
    reason: str


@operation("GET", "/v1/admin/cycles", scope=Scope.READ, example=ListCycles(environment="clinic-c", limit=1))
def list_cycles(context: Context, call: ListCycles) -> CycleList:
    """The newest adaptation cycles, newest first, each with its complete report.

    With `open_proposals` only those whose proposed head can be approved now.
    """
    store = context.store
    model_id = store.models.get(call.model).id if call.model is not None else None
    if call.open_proposals:
        cycles = store.cycles.proposals(model_id, call.environment)[: call.limit]
    else:
        cycles = store.cycles.list(model_id, call.environment, call.limit, outcome=call.outcome)
    return CycleList(cycles=cycle_answers(store, cycles))


@operation("GET", "/v1/admin/cycles/{cycle}", scope=Scope.READ, example=ShowCycle(cycle=_EXAMPLE))
def show_cycle(context: Context, call: ShowCycle) -> CycleAnswer:
    """One cycle with its complete report."""
    return cycle_answers(context.store, [context.store.cycles.get(call.cycle)])[0]


@operation(
    "POST", "/v1/admin/cycles/{cycle}/approve", scope=Scope.OPERATE, example=ApproveCycle(cycle=_EXAMPLE)
)
def approve_cycle(context: Context, call: ApproveCycle) -> CycleAnswer:
    """Publish exactly the head that a cycle proposed; status 409 names the newer change that prevents it."""
    approved = context.store.cycles.approve(call.cycle, actor=context.actor)
    return cycle_answers(context.store, [approved])[0]


@operation(
    "POST",
    "/v1/admin/cycles/{cycle}/reject",
    scope=Scope.OPERATE,
    example=RejectCycle(cycle=_EXAMPLE, reason="a bad batch"),
)
def reject_cycle(context: Context, call: RejectCycle) -> CycleAnswer:
    """Reject the proposal of a cycle; while the present head stays, no cycle proposes nearly the same head again."""
    closed = context.store.cycles.reject(call.cycle, reason=call.reason, actor=context.actor)
    return cycle_answers(context.store, [closed])[0]


def cycle_answers(store: Store, cycles: Sequence[Cycle]) -> list[CycleAnswer]:
    """Cycles with the names of their models and the figures of the decisions that they affect."""
    references = {model.id: model.reference for model in store.models.list()}
    affected = store.swaps.figures([cycle.id for cycle in cycles])
    return [
        CycleAnswer.of(
            cycle,
            model=references[cycle.model_id],
            affected=figures_document(affected[cycle.id]) if cycle.id in affected else None,
        )
        for cycle in cycles
    ]
