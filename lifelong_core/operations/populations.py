"""Populations: the overview of all, and the present state and history of one."""

from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from lifelong_core.deploy.head_wording import describe_head
from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.populations import Need, PopulationAnswer, PopulationSummary, PublishedSwap
from lifelong_core.operations.cycles import affected_figures
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.store.cycles.overview import RECENT_SHIFTS, Overview, most_urgent_first
from lifelong_core.store.engine.clock import now
from lifelong_core.store.registry.sick_processes import describe_sick

MOST_WINDOWS = 1000
"""Largest number of cycles in the history of a population."""


@dataclass(frozen=True, kw_only=True)
class PopulationList(Entity):
    """Populations with their needs, and what is wrong with the processes of the installation."""

    populations: list[PopulationSummary]
    counts: dict[Need, int]
    """number of populations by need, of those that the call chooses"""
    more: int
    """further populations, which `limit` left out"""
    sick_processes: list[str]
    """sentences; empty: all is well"""


class ListPopulations(Call[PopulationList]):
    """Which populations are wanted, and in which order."""

    model: Annotated[str | None, Field(description="Only of this model: its name, or name@version.")] = None
    need: Annotated[Need | None, Field(description="Only those with this need.")] = None
    order: Annotated[
        Literal["need", "shift", "name"],
        Field(description="By need and size of the shift, by the size of the shift alone, or by name."),
    ] = "need"
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class ShowPopulation(Call[PopulationAnswer]):
    """A population, and how many of its newest cycles are wanted."""

    model: ModelReference
    environment: str
    limit: Annotated[int, Field(ge=1, le=MOST_WINDOWS)] = 100


@operation("GET", "/v1/admin/populations", scope=Scope.READ, example=ListPopulations(limit=5))
def list_populations(context: Context, call: ListPopulations) -> PopulationList:
    """All populations: what each needs from a person, its mode, head, shift, costs, accuracy and open proposals.

    `need` is `decide` (a person has to decide), `look` (a person should look at it) or `none`; `state` says why. The
    figures are those of the newest cycle. `sick_processes` says what is wrong with workers and monitors.
    """
    store, at = context.store, now()
    overview = Overview.load(store, context.settings, at=at)
    chosen = overview.populations
    if call.model is not None:
        model_id = store.models.get(call.model).id
        chosen = [population for population in chosen if population[0] == model_id]
    summaries = {population: overview.summary(population) for population in chosen}
    counts: dict[Need, int] = {"decide": 0, "look": 0, "none": 0}
    for summary in summaries.values():
        counts[summary.need] += 1
    listed = [one for one in chosen if call.need in (None, summaries[one].need)]
    listed.sort(key=lambda one: _place(summaries[one], call.order))
    shown = listed[: call.limit]
    shifts = store.population_cycles.recent_shifts(shown, limit=RECENT_SHIFTS)
    references = {model.id: model.reference for model in overview.registry.models.values()}
    return PopulationList(
        populations=[overview.summary(one, shifts[one]) for one in shown],
        counts=counts,
        more=len(listed) - len(shown),
        sick_processes=describe_sick(store.workers.list(), overview.monitors, references, at=at),
    )


@operation(
    "GET",
    "/v1/admin/populations/{model}/{environment}",
    scope=Scope.READ,
    example=ShowPopulation(model="resnet", environment="clinic-a", limit=2),
)
def show_population(context: Context, call: ShowPopulation) -> PopulationAnswer:
    """A population: its state as in the overview, its head in words, what its newest cycles saw, and their swaps."""
    store = context.store
    model, name = store.models.get(call.model), store.environments.get(call.environment).name
    overview = Overview.load(store, context.settings, at=now())
    population = model.id, name
    shifts = store.population_cycles.recent_shifts([population], limit=RECENT_SHIFTS)
    windows = store.population_cycles.windows(*population, limit=call.limit)
    activations = store.heads.activations(model.reference, environment=name)
    in_force_since = {one.head_version: one.activated_at for one in activations if one.reason == "swap"}
    swapped = [window for window in windows if window.published_version in in_force_since]
    affected = store.swaps.figures([window.cycle for window in swapped])
    head, _ = overview.head(population)
    return PopulationAnswer(
        summary=overview.summary(population, shifts[population]),
        class_names=list(overview.registry.tasks[model.task_id].class_names),
        head=None if head is None else _describe(head),
        head_made_at=None if head is None else head.created_at,
        head_cycle=None if head is None else _cycle_of(head),
        windows=windows,
        swaps=[
            PublishedSwap(
                cycle=window.cycle,
                at=in_force_since[version],
                head_version=version,
                affected=affected_figures(affected[window.cycle]) if window.cycle in affected else None,
            )
            for window in swapped
            if (version := window.published_version) is not None
        ],
    )


def _describe(record: HeadRecord) -> str:
    """What the head assumes, how it decides and where it comes from, as a sentence."""
    cycle, head = _cycle_of(record), record.head
    origin = f"published by {record.created_by}" if cycle is None else f"fitted by cycle {cycle}"
    return f"Head {record.version} {describe_head(head)}; {origin}."


def _cycle_of(record: HeadRecord) -> UUID | None:
    cycle = record.head.provenance.get("cycle")
    return UUID(cycle) if isinstance(cycle, str) else None


def _place(summary: PopulationSummary, order: str) -> tuple[object, ...]:
    """The sort key of a population."""
    urgency = most_urgent_first(summary)
    return {"need": urgency, "shift": urgency[1:], "name": urgency[2:]}[order]
