"""The knowledge base: its tasks, one task, and what to transfer to it."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.develop.knowledge.entry import Scenario
from lifelong_core.entities.access import Scope
from lifelong_core.store.knowledge.neighbours import rank_neighbours
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
    measures_of,
    suggestions_of,
    task_path,
)
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, worker_of

MOST = 50
"""Tasks on a page."""
LIST = "/console/knowledge"

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(Scope.READ)
def list_tasks(
    request: Request,
    search: Annotated[str, Query(max_length=64)] = "",
    after: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """Show the tasks by name, or those whose name contains a text."""
    knowledge = worker_of(request).store.knowledge
    found = knowledge.list(MOST + 1, after, containing=search.strip().lower())
    shown = found[:MOST]
    query = {"search": search} if search else {}
    return page(
        request,
        "knowledge/list",
        state=knowledge.state(),
        lines=[line_of(record) for record in shown],
        search=search,
        after=after,
        first=f"{LIST}?{urlencode(query)}" if query else LIST,
        later=f"{LIST}?{urlencode(query | {'after': shown[-1].task})}" if len(found) > MOST else None,
    )


@router.get(f"{LIST}/{{task}}")
@access(Scope.READ)
def show_task(request: Request, task: Name) -> Response:
    """Show what is known of a task, and what its fingerprints disclose."""
    store = worker_of(request).store
    record = store.knowledge.get(task)
    entry = record.entry
    return page(
        request,
        "knowledge/entry",
        task=task,
        path=task_path(task),
        record=record,
        entry=entry,
        card=card_facts(entry.card),
        fingerprints=[fingerprint_of(store, one) for one in record.fingerprints],
        scenarios=scenarios_of(entry),
    )


@router.get(f"{LIST}/{{task}}/neighbours")
@access(Scope.READ)
def show_neighbours(
    request: Request,
    task: Name,
    scenario: Scenario = "architecture",
    measure: Annotated[str, Query(max_length=40)] = "BA",
    number: Annotated[int, Query(alias="page", ge=1, le=100_000)] = 1,
) -> Response:
    """Show what to transfer to a task in one scenario, with the evidence, and the task map."""
    store = worker_of(request).store
    choice = Choice(task, scenario, measure, number)
    ranking = rank_neighbours(store, task, scenario=scenario, measure=measure)
    base = store.knowledge.load()
    return page(
        request,
        "knowledge/neighbours",
        **choices_of(choice, measures_of(base, task)),
        **suggestions_of(ranking, choice),
        **map_of(ranking, choice, base),
    )
