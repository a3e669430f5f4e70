"""`/v1/admin/cycles/{id}/affected`: decisions before a swap that differ under the new head."""

import threading
from typing import Annotated, cast
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_core.entities.affected import AffectedAnswer
from lifelong_core.store.cycles.affected_ranking import RankPosition
from lifelong_core.store.cycles.documents import affected_document
from lifelong_core.values.errors import InvalidInputError, UnavailableError
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute

MOST_COMPARED = 100_000
"""Largest number of predictions that one request compares; takes about 1 s, and slows other requests of the worker."""

_comparing = threading.Lock()
"""Held while a worker compares decisions, for one request at a time."""

router = APIRouter(route_class=GuardedRoute, tags=["history"])


@router.get("/v1/admin/cycles/{cycle}/affected")
@access(Scope.READ)
def list_affected(
    request: Request,
    cycle: UUID,
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
    after: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AffectedAnswer:
    """The decisions that differ under the head of a cycle, most costly first.

    The period begins at the latest change of prevalence in the cycle's report (else at the start of its window) and
    ends at the swap; decisions of older heads within an hour after the swap are included. For a head that waits for
    approval it ends now; in mode shadow, at the cycle. Predictions deleted from the log are not listed. `after` is
    `next` of the previous page; `since` and `until` narrow the period, which may hold at most 100,000 predictions.
    """
    store = worker_of(request).store
    found = store.cycles.get(cycle)
    period = store.affected.period(found).narrow(since, until)
    position = None if after is None else RankPosition.parse(after, field="after")
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
        page = store.affected.most_costly(period, limit=limit, after=position)
        model = next(model for model in store.models.list() if model.id == found.model_id)
        return cast("AffectedAnswer", affected_document(page, period, model.reference))
    finally:
        _comparing.release()
