"""Tokens, console sessions and audit entries."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

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


@dataclass(frozen=True)
class Token:
    """A bearer token, without its secret, of which only a hash is stored."""

    id: int
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    environments: frozenset[str] | None = None
    """the only environments in which it may predict and label; None: all"""
    rotated_at: datetime | None = None
    """time of the latest rotation; None: never rotated"""
    previous_expires_at: datetime | None = None
    """end of the validity of the previous secret; None: there is none"""
    last_used_at: datetime | None = field(default=None, compare=False)
    """to the minute; None: no known use"""

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

    @property
    def binding(self) -> str:
        """Text of the environments that it is bound to."""
        return "all" if self.environments is None else ", ".join(sorted(self.environments))

    def allows(self, scope: Scope) -> bool:
        """Whether the token has `scope`: `operate` includes `read`, `admin` includes all."""
        includes = {Scope.READ: {Scope.OPERATE, Scope.ADMIN}}.get(scope, {Scope.ADMIN})
        return scope in self.scopes or not includes.isdisjoint(self.scopes)


@dataclass(frozen=True)
class ConsoleSession:
    """A browser that is logged in to the console."""

    token: str
    """name of the token of the login"""
    address: str
    """IP address of the login; empty: not known"""
    created_at: datetime
    used_at: datetime
    """time of the last request, to about ten seconds"""
    valid_until: datetime
    """end of the session without a further request"""
    ends_at: datetime
    """latest end of the session, even with requests"""


@dataclass(frozen=True)
class AuditEntry:
    """One change: actor, action, subject, time and source."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    source: str | None = None
    """client address; `local`: command line or monitor; None: written by an older version"""
    previous_digest: str = ""
    digest: str = ""
    """digest of all the above, see `audit_chain`"""
