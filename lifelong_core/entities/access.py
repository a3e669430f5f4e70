"""Tokens, console sessions and audit entries."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import PlainSerializer

from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.values.names import DEFAULT_ENVIRONMENT


class Scope(StrEnum):
    """Permission of a token. `operate` includes `read`; `admin` includes all."""

    PREDICT = "predict"
    FEEDBACK = "feedback"
    METRICS = "metrics"
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


BOUND_SCOPES = frozenset({Scope.PREDICT, Scope.FEEDBACK})
"""Scopes that a binding to environments limits; the other scopes reach all environments."""


def _sorted(names: frozenset[str]) -> list[str]:
    return sorted(names)


@dataclass(frozen=True, kw_only=True)
class TokenAnswer(Entity):
    """A token without its secret."""

    name: str
    scopes: Annotated[frozenset[Scope], PlainSerializer(_sorted, return_type=list[Scope])]
    created_at: Moment
    expires_at: Moment | None = None
    revoked_at: Moment | None = None
    environments: Annotated[frozenset[str], PlainSerializer(_sorted, return_type=list[str])] | None = None
    """the only ones in which it may predict and label; null: all"""
    rotated_at: Moment | None = None
    """when it got its present secret; null: never rotated"""
    previous_expires_at: Moment | None = None
    """until when the secret before that is valid; null: there is none"""
    last_used_at: Moment | None = field(default=None, compare=False)
    """to a minute; null: not known to have been used"""

    @property
    def binding(self) -> str:
        """Text of the environments that it is bound to."""
        return "all" if self.environments is None else ", ".join(sorted(self.environments))


@dataclass(frozen=True, kw_only=True)
class Token(TokenAnswer):
    """A bearer token: a row of `tokens`, where only a hash of the secret is stored."""

    id: int

    @property
    def default_environment(self) -> str:
        """Environment of requests that name none: the only one that the token is bound to, else `default`."""
        if self.environments is not None and len(self.environments) == 1:
            return next(iter(self.environments))
        return DEFAULT_ENVIRONMENT

    def has_ended(self, moment: datetime) -> bool:
        """Whether it is revoked, or expired at `moment`."""
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= moment)

    def may_use(self, environment: str) -> bool:
        """Whether it may predict and label in an environment."""
        return self.environments is None or environment in self.environments

    def allows(self, scope: Scope) -> bool:
        """Whether the token has `scope`: `operate` includes `read`, `admin` includes all."""
        includes = {Scope.READ: {Scope.OPERATE, Scope.ADMIN}}.get(scope, {Scope.ADMIN})
        return scope in self.scopes or not includes.isdisjoint(self.scopes)


@dataclass(frozen=True)
class ConsoleSession(Entity):
    """A browser that is logged in to the console."""

    token: str
    """name of the token of the login"""
    address: str
    """IP address of the login; empty: not known"""
    created_at: Moment
    used_at: Moment
    """time of the last request, to about ten seconds"""
    valid_until: Moment
    """end of the session without a further request"""
    ends_at: Moment
    """latest end of the session, even with requests"""


@dataclass(frozen=True)
class AuditEntry(Entity):
    """An entry of the audit log: a change, or refused requests, with actor, time and address."""

    id: int
    at: Moment
    actor: str
    action: str
    subject: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """what the action changed; the keys depend on the action"""
    source: str = "local"
    """address of the client; `local`: command line or monitor"""
    previous_digest: str = ""
    """of the entry before; 64 zeros before the first one"""
    digest: str = ""
    """SHA-256 of the entry with the digest of the one before it"""
