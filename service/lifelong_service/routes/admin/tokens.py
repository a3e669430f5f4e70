"""`/v1/admin/tokens`: tokens and their scopes. A secret is shown once, when it is created."""

from datetime import timedelta

from fastapi import APIRouter
from pydantic import AwareDatetime, Field
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_core.store.access.tokens import LONGEST_OVERLAP
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.names import Name
from lifelong_service.documents.registry import token_document
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.history import TokenAnswer, TokenList, TokenWithSecret

router = APIRouter(route_class=GuardedRoute, tags=["tokens"])


class NewToken(RequestDocument):
    """A token with scopes; without `expires_at` it is valid until it is revoked.

    With `environments` it may predict and label only in these (missing ones are added), and its scopes are `predict`,
    `feedback` or both. With exactly one, this is the default environment of its requests.
    """

    name: Name
    scopes: set[Scope]
    expires_at: AwareDatetime | None = None
    environments: list[str] | None = Field(None, min_length=1, max_length=1000)


class Rotation(RequestDocument):
    """Rotation of a token; without `expires_at` the new secret gets the same lifetime as the present one."""

    overlap_seconds: int = Field(
        86400,
        ge=0,
        le=int(LONGEST_OVERLAP.total_seconds()),
        description="The present secret stays valid for so long.",
    )
    expires_at: AwareDatetime | None = None


@router.get("/v1/admin/tokens")
@access(Scope.READ)
def list_tokens(request: Request) -> TokenList:
    """All tokens, without secrets."""
    return {"tokens": [token_document(token) for token in worker_of(request).store.tokens.list()]}


@router.post("/v1/admin/tokens", status_code=201)
@access(Scope.ADMIN)
def add_token(request: Request, new: NewToken) -> TokenWithSecret:
    """Create a token; `secret` cannot be shown again."""
    token, secret = worker_of(request).store.tokens.create(
        new.name,
        new.scopes,
        actor=actor_of(request),
        expires_at=new.expires_at,
        environments=new.environments,
    )
    return {**token_document(token), "secret": secret}


@router.post("/v1/admin/tokens/{name}/rotate")
@access(Scope.ADMIN)
def rotate_token(request: Request, name: str, rotation: Rotation) -> TokenWithSecret:
    """Give a token a new `secret`, which cannot be shown again; name, scopes and environments stay."""
    token, secret = worker_of(request).store.tokens.rotate(
        name,
        actor=actor_of(request),
        overlap=timedelta(seconds=rotation.overlap_seconds),
        expires_at=rotation.expires_at,
    )
    return {**token_document(token), "secret": secret}


@router.delete("/v1/admin/tokens/{name}")
@access(Scope.ADMIN)
def revoke_token(request: Request, name: str) -> TokenAnswer:
    """Revoke a token permanently; every worker refuses it within a second."""
    return token_document(worker_of(request).store.tokens.revoke(name, actor=actor_of(request)))
