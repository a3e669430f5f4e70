"""`/v1/admin/tokens`: who may call. A secret is shown once, when it is made."""

from fastapi import APIRouter
from pydantic import AwareDatetime
from starlette.requests import Request

from lifelong_core.store.records import Scope
from lifelong_service.documents import token_document
from lifelong_service.guard import GuardedRoute, access, actor_of, worker_of
from lifelong_service.schemas.history import TokenAnswer, TokenList, TokenWithSecret
from lifelong_service.schemas.requests import RequestDocument

router = APIRouter(route_class=GuardedRoute, tags=["tokens"])


class NewToken(RequestDocument):
    """A token with scopes; without `expires_at` it is valid until it is revoked."""

    name: str
    scopes: set[Scope]
    expires_at: AwareDatetime | None = None


@router.get("/v1/admin/tokens")
@access(Scope.READ)
def list_tokens(request: Request) -> TokenList:
    """All tokens, without secrets."""
    return {"tokens": [token_document(token) for token in worker_of(request).store.tokens.list()]}


@router.post("/v1/admin/tokens", status_code=201)
@access(Scope.ADMIN)
def add_token(request: Request, new: NewToken) -> TokenWithSecret:
    """Make a token; `secret` cannot be shown again."""
    token, secret = worker_of(request).store.tokens.create(
        new.name, new.scopes, actor=actor_of(request), expires_at=new.expires_at
    )
    return {**token_document(token), "secret": secret}


@router.delete("/v1/admin/tokens/{name}")
@access(Scope.ADMIN)
def revoke_token(request: Request, name: str) -> TokenAnswer:
    """Make a token invalid for good; every worker refuses it within a second."""
    return token_document(worker_of(request).store.tokens.revoke(name, actor=actor_of(request)))
