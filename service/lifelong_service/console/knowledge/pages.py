"""The knowledge base: its tasks, one task, and what to transfer to it."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.develop.knowledge.entry import KnowledgeEntry, Scenario
from lifelong_core.operations.develop.knowledge import (
    ListDisclosures,
    ListKnowledge,
    ListNeighbours,
    MapTasks,
    ShowKnowledge,
    TaskMapAnswer,
)
from lifelong_core.values.errors import UnavailableError
from lifelong_core.values.names import Name
from lifelong_service.console.knowledge.entry_views import (
    card_facts,
    fingerprint_of,
    line_of,
    scenarios_of,
)
from lifelong_service.console.knowledge.neighbours import (
    Choice,
    choices_of,
    map_of,
    suggestions_of,
    task_path,
)
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

MOST = 50
"""Tasks on a page."""
LIST = "/console/knowledge"

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(ListKnowledge.operation.scope)
def list_tasks(
    request: Request,
    search: Annotated[str, Query(max_length=64)] = "",
    after: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """Show the tasks by name, or those whose name contains a text."""
    found = carry_out(request, ListKnowledge(limit=MOST, after=after, search=search))
    query = {"search": search} if search else {}
    return page(
        request,
        "knowledge/list",
        found=found,
        lines=[line_of(entry) for entry in found.entries],
        search=search,
        after=after,
        first=f"{LIST}?{urlencode(query)}" if query else LIST,
        later=f"{LIST}?{urlencode(query | {'after': found.next})}" if found.next else None,
    )


@router.get(f"{LIST}/{{task}}")
@access(ShowKnowledge.operation.scope)
def show_task(request: Request, task: Name) -> Response:
    """Show what is known of a task, and what its fingerprints disclose."""
    record = carry_out(request, ShowKnowledge(task=task))
    if record.damaged is not None:
        raise UnavailableError(record.damaged)
    entry = KnowledgeEntry.from_document(record.entry)
    disclosures = carry_out(request, ListDisclosures(task=task)).fingerprints
    return page(
        request,
        "knowledge/entry",
        task=task,
        path=task_path(task),
        record=record,
        entry=entry,
        card=card_facts(entry.card),
        fingerprints=[fingerprint_of(fingerprint) for fingerprint in disclosures],
        scenarios=scenarios_of(entry),
    )


@router.get(f"{LIST}/{{task}}/neighbours")
@access(ListNeighbours.operation.scope)
def show_neighbours(
    request: Request,
    task: Name,
    scenario: Scenario = "architecture",
    measure: Annotated[str, Query(max_length=40)] = "BA",
    number: Annotated[int, Query(alias="page", ge=1, le=100_000)] = 1,
) -> Response:
    """Show what to transfer to a task in one scenario, with the evidence, and the task map."""
    from lifelong_core.develop.ranking.suggestion import Ranking  # loads the metrics

    choice = Choice(task, scenario, measure, number)
    wanted = ListNeighbours.read({"task": task, "scenario": scenario, "measure": measure}, is_request=True)
    ranking = Ranking.from_document(carry_out(request, wanted))
    measures = carry_out(request, ShowKnowledge(task=task)).measures

    def locate(tasks: list[str], method: str | None) -> TaskMapAnswer:
        return carry_out(request, MapTasks(tasks=tasks, method=method))

    return page(
        request,
        "knowledge/neighbours",
        **choices_of(choice, measures),
        **suggestions_of(ranking, choice),
        **map_of(ranking, choice, locate),
    )
