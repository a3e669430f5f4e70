"""The pages of tokens: all of them, and one with its sessions; forms to create, rotate and revoke them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.operations.administration.tokens import (
    EndSessions,
    ListSessions,
    ListTokens,
    NewToken,
    RevokeToken,
    Rotation,
    TokenWithSecret,
)
from lifelong_core.operations.operation import Call
from lifelong_core.values.errors import LifelongError, NotFoundError
from lifelong_service.console.confirmation import decide
from lifelong_service.console.pages import page
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, carry_out

LIST = "/console/tokens"
LIFETIMES = {"30": "30 days", "90": "90 days", "365": "a year", "": "until it is revoked"}
"""Lifetimes of new tokens by their number of days."""
OVERLAPS = {"86400": "for a day", "3600": "for an hour", "0": "no longer: others may know it"}
"""How long the former secret stays valid, by seconds."""
_NEW = {"name": "", "environments": "", "days": "90"}

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(ListTokens.operation.scope)
def list_tokens(request: Request) -> Response:
    """Show all tokens and the form for a new one."""
    return _list_page(request)


@router.post(LIST)
@access(NewToken.operation.scope, media_types=FORM)
def create_token(request: Request, form: Form) -> Response:
    """Create a token and show its secret, once."""
    typed = {name: str(form.get(name, "")).strip() for name in _NEW}
    scopes = [str(scope) for scope in form.getlist("scopes")]
    environments = [name.strip() for name in typed["environments"].split(",") if name.strip()]

    def read() -> NewToken:
        days = typed["days"] if typed["days"] in LIFETIMES else "90"
        return NewToken.read(
            {
                "name": typed["name"],
                "scopes": scopes,
                "environments": environments or None,
                "expires_at": datetime.now(UTC) + timedelta(days=int(days)) if days else None,
            },
            is_request=True,
        )

    def refused(error: LifelongError, status: int) -> Response:
        return _list_page(request, status=status, error=error, typed=typed, scopes=scopes)

    return decide(
        request, form, read, back=LIST, refused=refused, shown=lambda token: _secret(request, token)
    )


@router.get(LIST + "/{name}")
@access(ListTokens.operation.scope)
def show_token(request: Request, name: str) -> Response:
    """Show a token with its sessions, and the forms to rotate and revoke it."""
    return _token_page(request, name)


@router.post(LIST + "/{name}/rotate")
@access(Rotation.operation.scope, media_types=FORM)
def rotate_token(request: Request, name: str, form: Form) -> Response:
    """Give a token a new secret and show it, once."""
    overlap = str(form.get("overlap", ""))

    def call() -> Rotation:
        return Rotation.read({"name": name, "overlap_seconds": overlap if overlap in OVERLAPS else 86400})

    return decide(
        request,
        form,
        call,
        back=f"{LIST}/{name}",
        refused=lambda error, status: _token_page(request, name, status=status, error=error),
        shown=lambda token: _secret(request, token),
    )


@router.post(LIST + "/{name}/revoke")
@access(RevokeToken.operation.scope, media_types=FORM)
def revoke_token(request: Request, name: str, form: Form) -> Response:
    """Revoke a token for good."""
    return _change(request, name, form, RevokeToken)


@router.post(LIST + "/{name}/log-out")
@access(EndSessions.operation.scope, media_types=FORM)
def log_out(request: Request, name: str, form: Form) -> Response:
    """End all sessions of a token."""
    return _change(request, name, form, EndSessions)


def _change(request: Request, name: str, form: Form, call: type[Call[Any]]) -> Response:
    return decide(
        request,
        form,
        lambda: call.read({"name": name}),
        back=f"{LIST}/{name}",
        refused=lambda error, status: _token_page(request, name, status=status, error=error),
    )


def _list_page(
    request: Request,
    *,
    status: int = 200,
    error: LifelongError | None = None,
    typed: dict[str, str] | None = None,
    scopes: list[str] | None = None,
) -> Response:
    tokens = carry_out(request, ListTokens()).tokens
    return page(
        request,
        "administration/tokens",
        status=status,
        error=error,
        tokens=sorted(tokens, key=lambda token: (token.revoked_at is not None, token.name)),
        now=datetime.now(UTC),
        typed=typed or _NEW,
        chosen=scopes or [Scope.PREDICT],
        scopes=list(Scope),
        lifetimes=LIFETIMES,
        path=LIST,
    )


def _token_page(
    request: Request, name: str, *, status: int = 200, error: LifelongError | None = None
) -> Response:
    named = [token for token in carry_out(request, ListTokens()).tokens if token.name == name]
    if not named:
        raise NotFoundError(f"there is no token {name[:80]!r}.", hint="Choose one from the list of tokens.")
    return page(
        request,
        "administration/token",
        status=status,
        error=error,
        shown_token=named[0],
        sessions=carry_out(request, ListSessions(name=name)).sessions,
        overlaps=OVERLAPS,
        path=f"{LIST}/{name}",
    )


def _secret(request: Request, token: TokenWithSecret) -> Response:
    return page(request, "administration/secret", shown_token=token, path=LIST)
