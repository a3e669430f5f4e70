"""Cycles and their proposals: list, show, approve, reject, run, replay; decisions that a swap affects."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, TypeAlias

from pydantic import AwareDatetime, Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.affected import (
    AffectedAnswer,
    AffectedFiguresAnswer,
    AffectedPredictionAnswer,
    ChangeAnswer,
)
from lifelong_core.entities.cycles import Cycle, CycleAnswer, Outcome
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.operations.operation import JOB_LOCATION, Call, Context, ModelReference, operation
from lifelong_core.store import Store, logged_at
from lifelong_core.store.cycles.affected_decisions import AffectedList, AffectedPrediction
from lifelong_core.store.cycles.affected_ranking import RankPosition
from lifelong_core.store.cycles.swaps import AffectedFigures, AffectedPeriod
from lifelong_core.values.errors import InvalidInputError, UnavailableError
from lifelong_core.values.names import Name

CycleReference: TypeAlias = Annotated[
    str, Field(min_length=4, description="Id of the cycle, or an unambiguous beginning of it.")
]
LARGEST_LIST = 1000
"""Largest number of cycles in one answer."""
LARGEST_PAGE = 1000
"""Largest number of affected predictions in one answer."""
MOST_COMPARED = 100_000
"""Largest number of predictions that one request compares; takes about 1 s, and slows other requests of the worker."""
_EXAMPLE = "01a20676-ec35-71e3-9541-7358988905de"
_comparing = threading.Lock()
"""Held while a process compares decisions, for one request at a time."""


@dataclass(frozen=True, kw_only=True)
class CycleList(Entity):
    """Cycles, newest first."""

    cycles: list[CycleAnswer]


class ListCycles(Call[CycleList]):
    """Which cycles are wanted."""

    model: Annotated[str | None, Field(description="Only of this model: its name, or name@version.")] = None
    environment: Annotated[Name | None, Field(description="Only of this environment.")] = None
    outcome: Outcome | None = None
    limit: Annotated[int, Field(ge=1, le=LARGEST_LIST)] = 100
    open_proposals: Annotated[
        bool, Field(description="Only those whose proposed head can be approved now.")
    ] = False


class ShowCycle(Call[CycleAnswer]):
    """A cycle."""

    cycle: CycleReference


class ApproveCycle(Call[CycleAnswer]):
    """A cycle that proposed a head."""

    cycle: CycleReference


class RejectCycle(Call[CycleAnswer]):
    """Reason against a proposed head, 1 to 200 printable characters."""

    cycle: CycleReference
    reason: Annotated[str, Field(description="Why it is declined; at most 200 characters.")]


class RunCycle(Call[JobAnswer]):
    """A population."""

    model: ModelReference
    environment: str


class ReplayCycle(Call[JobAnswer]):
    """A cycle."""

    cycle: CycleReference


class ListAffected(Call[AffectedAnswer]):
    """A cycle that wanted another head, and which of the predictions that it affects are wanted."""

    cycle: CycleReference
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    after: Annotated[str | None, Field(max_length=100)] = None
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 100


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
    return cycle_answers(context.store, [context.store.cycles.find(call.cycle)])[0]


@operation(
    "POST", "/v1/admin/cycles/{cycle}/approve", scope=Scope.OPERATE, example=ApproveCycle(cycle=_EXAMPLE)
)
def approve_cycle(context: Context, call: ApproveCycle) -> CycleAnswer:
    """Publish exactly the head that a cycle proposed; status 409 names the newer change that prevents it."""
    cycles = context.store.cycles
    approved = cycles.approve(cycles.find(call.cycle).id, actor=context.actor)
    return cycle_answers(context.store, [approved])[0]


@operation(
    "POST",
    "/v1/admin/cycles/{cycle}/reject",
    scope=Scope.OPERATE,
    example=RejectCycle(cycle=_EXAMPLE, reason="a bad batch"),
)
def reject_cycle(context: Context, call: RejectCycle) -> CycleAnswer:
    """Reject the proposal of a cycle; while the present head stays, no cycle proposes nearly the same head again."""
    cycles = context.store.cycles
    closed = cycles.reject(cycles.find(call.cycle).id, reason=call.reason, actor=context.actor)
    return cycle_answers(context.store, [closed])[0]


@operation("GET", "/v1/admin/cycles/{cycle}/affected", scope=Scope.READ, example=ListAffected(cycle=_EXAMPLE))
def list_affected(context: Context, call: ListAffected) -> AffectedAnswer:
    """The decisions that differ under the head of a cycle, most costly first.

    The period begins at the latest change of prevalence in the cycle's report (else at the start of its window) and
    ends at the swap; decisions of older heads within an hour after the swap are included. For a head that waits for
    approval it ends now; in mode shadow, at the cycle. Predictions deleted from the log are not listed. `after` is
    `next` of the previous page; `since` and `until` narrow the period, which may hold at most 100,000 predictions.
    """
    store = context.store
    period = store.affected.period(store.cycles.find(call.cycle)).narrow(call.since, call.until)
    position = None if call.after is None else RankPosition.parse(call.after, field="after")
    if not _comparing.acquire(blocking=False):
        raise UnavailableError("this worker makes another list of affected decisions at the moment.")
    try:
        logged = store.affected.count_logged(period)
        if logged > MOST_COMPARED:
            raise InvalidInputError(
                f"the period holds {logged:,} predictions, and a request compares at most {MOST_COMPARED:,}.",
                field="since",
                hint="Narrow it by `since` and `until`, or run `lifelong cycles affected` on the host.",
            )
        listed = store.affected.most_costly(period, limit=call.limit, after=position)
        return next(affected_pages(store, period, listed))
    finally:
        _comparing.release()


def affected_pages(store: Store, period: AffectedPeriod, listed: AffectedList) -> Iterator[AffectedAnswer]:
    """The listed predictions in answers of at most LARGEST_PAGE of them, at least one answer; read page by page."""
    model = next(model.reference for model in store.models.list() if model.id == period.model_id)
    names = period.head.decision_names
    answer = AffectedAnswer(
        cycle=period.cycle_id,
        model=model,
        environment=period.environment,
        head_version=period.head_version,
        activated_at=period.activated_at,
        figures=affected_figures(listed.figures),
        decisions=list(names),
        predictions=[],
        next=None if listed.next is None else str(listed.next),
    )
    predictions = (_prediction(affected, names) for affected in listed.predictions)
    page = list(islice(predictions, LARGEST_PAGE))
    yield replace(answer, predictions=page)
    while page := list(islice(predictions, LARGEST_PAGE)):
        yield replace(answer, predictions=page)


@operation(
    "POST",
    "/v1/admin/populations/{model}/{environment}/cycle",
    scope=Scope.OPERATE,
    status=202,
    location=JOB_LOCATION,
    example=RunCycle(model="resnet", environment="clinic-a"),
)
def run_cycle(context: Context, call: RunCycle) -> JobAnswer:
    """Run a cycle of a population now, even without new predictions; the answer is a job.

    A monitor runs it like a scheduled cycle: under the lease of the population, with its policy, mode and pins, and
    records it. The result of the job has the id of the cycle (equal to the id of the job), its outcome (`keep`, `swap`,
    `proposes a swap`, `would swap`, `refuse`; `skip`: no cycle was recorded) and the reason.
    """
    store = context.store
    payload = {
        "model": store.models.get(call.model).reference,
        "environment": store.environments.get(call.environment).name,
    }
    return JobAnswer.of(store.jobs.submit("cycle", payload, actor=context.actor))


@operation(
    "POST",
    "/v1/admin/cycles/{cycle}/replay",
    scope=Scope.OPERATE,
    status=202,
    location=JOB_LOCATION,
    example=ReplayCycle(cycle=_EXAMPLE),
)
def replay_cycle(context: Context, call: ReplayCycle) -> JobAnswer:
    """Run a past cycle again on its window and compare the reports; the answer is a job for a monitor.

    The result of the job has `same`; `tolerance`, 0 for an exact comparison (1e-9 for a window of summaries); and
    `differences`, each field that differs with its `recorded` and its `replayed` value. The job fails if the log no
    longer holds the predictions of that window.
    """
    store = context.store
    payload = {"cycle": str(store.cycles.find(call.cycle).id)}
    return JobAnswer.of(store.jobs.submit("replay", payload, actor=context.actor))


def cycle_answers(store: Store, cycles: Sequence[Cycle]) -> list[CycleAnswer]:
    """Cycles with the names of their models and the figures of the decisions that they affect."""
    references = {model.id: model.reference for model in store.models.list()}
    affected = store.swaps.figures([cycle.id for cycle in cycles])
    return [
        CycleAnswer.of(
            cycle,
            model=references[cycle.model_id],
            affected=affected_figures(affected[cycle.id]) if cycle.id in affected else None,
        )
        for cycle in cycles
    ]


def affected_figures(figures: AffectedFigures) -> AffectedFiguresAnswer:
    """The figures of a swap as people see them."""
    counts = figures.counts
    return AffectedFiguresAnswer.of(
        figures,
        predictions=counts.predictions,
        affected=counts.affected,
        share=counts.share,
        expected_cost=counts.expected_cost,
        mean_cost=counts.mean_cost,
        changes=[ChangeAnswer.of(change) for change in counts.changes],
    )


def _prediction(affected: AffectedPrediction, names: Sequence[str]) -> AffectedPredictionAnswer:
    group = affected.group_hash
    return AffectedPredictionAnswer.of(
        affected,
        prediction_id=affected.id,
        logged_at=logged_at(affected.id),
        group=None if group is None else bytes(group).hex(),
        true_class=affected.label,
        label=names[affected.decision],
        new_label=names[affected.new_decision],
    )
