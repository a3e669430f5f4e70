"""`/v1/admin/tasks/{task}/neighbours`: what to transfer from which task."""

from typing import Annotated, cast

from fastapi import APIRouter, Query
from starlette.requests import Request

from lifelong_core.develop.knowledge.entry import Scenario
from lifelong_core.entities.access import Scope
from lifelong_core.store.knowledge.neighbours import CONFIDENCE, rank_neighbours
from lifelong_service.bodies.parameters import check_parameters
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.knowledge import RankingDocument

_ShortText = Annotated[str, Query(min_length=1, max_length=64)]
_PARAMETERS = ("scenario", "measure", "strategy", "confidence", "limit")

router = APIRouter(route_class=GuardedRoute, tags=["knowledge"])


@router.get("/v1/admin/tasks/{task}/neighbours")
@access(Scope.READ)
def list_neighbours(  # noqa: PLR0913, RUF100 - the parts of a request
    request: Request,
    task: str,
    scenario: Annotated[Scenario, Query(description="What would be transferred.")],
    measure: Annotated[_ShortText, Query(description="Acronym of the measure of the gain.")] = "BA",
    strategy: Annotated[
        _ShortText, Query(description="learned, a method of fingerprints such as VDNA, or a baseline.")
    ] = "learned",
    confidence: Annotated[float, Query(ge=0.5, le=0.99, description="Of the intervals.")] = CONFIDENCE,
    limit: Annotated[int | None, Query(ge=1, le=1000, description="Largest number of sources.")] = None,
) -> RankingDocument:
    """Source tasks of the knowledge base for a task, best first, each with its expected gain and the evidence.

    The task is one of the knowledge base; a registered task is one as soon as it has a fingerprint or an entry.
    `declined` says why no source is recommended.
    """
    check_parameters(request.query_params, _PARAMETERS)
    ranking = rank_neighbours(
        worker_of(request).store,
        task,
        scenario=scenario,
        measure=measure,
        strategy=strategy,
        confidence=confidence,
        limit=limit,
    )
    return cast("RankingDocument", ranking.to_document())
