"""`/v1/admin/groups/erase`: erasure of all logged data of a patient or study."""

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_core.store.lifecycle.privacy import group_hashes
from lifelong_core.values.documents import RequestDocument
from lifelong_service.bodies.parameters import MAXIMUM_GROUP_LENGTH
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.history import ErasedAnswer

router = APIRouter(route_class=GuardedRoute, tags=["groups"])


class Group(RequestDocument):
    """A group key in clear text, as in predictions; it is not logged."""

    model_config = ConfigDict(hide_input_in_errors=True)

    group: str = Field(min_length=1, max_length=MAXIMUM_GROUP_LENGTH)


@router.post("/v1/admin/groups/erase")
@access(Scope.ADMIN)
def erase_group(request: Request, named: Group) -> ErasedAnswer:
    """Erase the predictions of a group with their labels, their history and request ids; the answer counts them.

    The search reads the whole log. If it exceeds the time limit, the answer is status 503 while the erasure continues;
    a repeated request erases the rest. A host that lacks a key of the installation answers 503, because it would miss
    predictions.
    """
    worker, actor = worker_of(request), actor_of(request)
    keys = worker.store.group_keys.erasing_keys(worker.settings.resolved_group_key_file, actor=actor)
    erased = worker.store.erasure.erase(group_hashes(keys, named.group), actor=actor)
    return {
        "predictions": erased.predictions,
        "labels": erased.labels,
        "requests": erased.requests,
        "label_revisions": erased.label_revisions,
    }
