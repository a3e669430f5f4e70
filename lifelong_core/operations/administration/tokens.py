"""Tokens, their scopes, and the console sessions of each. A secret is shown once, when it is created."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from pydantic import AwareDatetime, Field

from lifelong_core.entities.access import ConsoleSession, Scope, TokenAnswer
from lifelong_core.entities.entity import Entity
from lifelong_core.operations.operation import Call, Context, operation
from lifelong_core.store.access.tokens import LONGEST_OVERLAP
from lifelong_core.values.names import Name


@dataclass(frozen=True, kw_only=True)
class TokenWithSecret(TokenAnswer):
    """A new token; its secret is shown only once."""

    secret: str


@dataclass(frozen=True, kw_only=True)
class TokenList(Entity):
    """All tokens."""

    tokens: list[TokenAnswer]


@dataclass(frozen=True, kw_only=True)
class SessionList(Entity):
    """Open sessions of the console, the most recently used first."""

    sessions: list[ConsoleSession]


@dataclass(frozen=True, kw_only=True)
class EndedSessions(Entity):
    """Number of sessions that a request ended."""

    ended: int


class ListTokens(Call[TokenList]):
    """Nothing is chosen."""


class NewToken(Call[TokenWithSecret]):
    """A token with scopes; without `expires_at` it is valid until it is revoked.

    With `environments` it may predict and label only in these (missing ones are added), and its scopes are `predict`,
    `feedback` or both. With exactly one, this is the default environment of its requests.
    """

    name: Name
    scopes: set[Scope]
    expires_at: AwareDatetime | None = None
    environments: Annotated[list[str] | None, Field(min_length=1, max_length=1000)] = None


class Rotation(Call[TokenWithSecret]):
    """Rotation of a token; without `expires_at` the new secret gets the same lifetime as the present one."""

    name: str
    overlap_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=int(LONGEST_OVERLAP.total_seconds()),
            description="The present secret stays valid for so long.",
        ),
    ] = 86400
    expires_at: AwareDatetime | None = None


class RevokeToken(Call[TokenAnswer]):
    """A token."""

    name: str


class ListSessions(Call[SessionList]):
    """The token of the sessions; without it, all tokens."""

    name: Name | None = None


class EndSessions(Call[EndedSessions]):
    """A token."""

    name: Name


@operation("GET", "/v1/admin/tokens", scope=Scope.READ, example=ListTokens())
def list_tokens(context: Context, call: ListTokens) -> TokenList:  # noqa: ARG001
    """All tokens, without secrets."""
    return TokenList(tokens=list(context.store.tokens.list()))


@operation(
    "POST",
    "/v1/admin/tokens",
    scope=Scope.ADMIN,
    status=201,
    example=NewToken(name="scanner-3", scopes={Scope.PREDICT}, environments=["clinic-a"]),
)
def add_token(context: Context, call: NewToken) -> TokenWithSecret:
    """Create a token; `secret` cannot be shown again."""
    token, secret = context.store.tokens.create(
        call.name,
        call.scopes,
        actor=context.actor,
        expires_at=call.expires_at,
        environments=call.environments,
    )
    return TokenWithSecret.of(token, secret=secret)


@operation(
    "POST",
    "/v1/admin/tokens/{name}/rotate",
    scope=Scope.ADMIN,
    example=Rotation(name="scanner-3", overlap_seconds=3600),
)
def rotate_token(context: Context, call: Rotation) -> TokenWithSecret:
    """Give a token a new `secret`, which cannot be shown again; name, scopes and environments stay."""
    token, secret = context.store.tokens.rotate(
        call.name,
        actor=context.actor,
        overlap=timedelta(seconds=call.overlap_seconds),
        expires_at=call.expires_at,
    )
    return TokenWithSecret.of(token, secret=secret)


@operation("GET", "/v1/admin/sessions", scope=Scope.READ, example=ListSessions(name="scanner-3"))
def list_sessions(context: Context, call: ListSessions) -> SessionList:
    """The open sessions of the console: where people are logged in, with a token or with any."""
    return SessionList(sessions=context.store.console_sessions.list(call.name))


@operation(
    "POST", "/v1/admin/tokens/{name}/log-out", scope=Scope.ADMIN, example=EndSessions(name="scanner-3")
)
def end_sessions(context: Context, call: EndSessions) -> EndedSessions:
    """End all sessions of the console of a token, in every browser; the token stays valid."""
    return EndedSessions(ended=context.store.console_sessions.end_all(call.name, actor=context.actor))


@operation("DELETE", "/v1/admin/tokens/{name}", scope=Scope.ADMIN, example=RevokeToken(name="scanner-3"))
def revoke_token(context: Context, call: RevokeToken) -> TokenAnswer:
    """Revoke a token permanently; every worker refuses it within a second."""
    return context.store.tokens.revoke(call.name, actor=context.actor)
