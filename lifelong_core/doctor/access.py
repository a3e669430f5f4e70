"""Checks of tokens: their expiry, and the environments that they may use."""

from collections.abc import Iterator
from datetime import timedelta

from lifelong_core.doctor.findings import Finding, Installation, ok, warning
from lifelong_core.entities.access import BOUND_SCOPES
from lifelong_core.store import Scope, Token
from lifelong_core.store.log.identifiers import EPOCH

EXPIRY_NOTICE = timedelta(days=14)
"""A token that expires within this time, or has expired within it, is named."""
IN_USE = timedelta(days=30)
"""A token that was used within this time is in use."""


def check_tokens(installation: Installation) -> Iterator[Finding]:
    """No token expires soon, and each client token is limited to its environments."""
    known = [token for token in installation.store.tokens.list() if token.revoked_at is None]
    for token in known:
        yield from _of_expiry(installation, token)
    environments = {name for _, name in installation.store.predictions.populations(EPOCH)}
    if len(environments) > 1:
        for token in known:
            if token.environments is None and token.scopes & BOUND_SCOPES and _is_in_use(installation, token):
                yield warning(
                    f"the token {token.name} may predict or label in all {len(environments)} environments.",
                    "Bind each client to its own: `lifelong tokens create NAME --scope predict --environment SITE`,"
                    f" then `lifelong tokens revoke {token.name}`.",
                )
        if installation.settings.open_access:
            yield warning(
                f"open_access is on, so any client may predict and label in all {len(environments)} environments.",
                "Turn it off and give each client a token that is bound to its environment, unless the gateway before"
                " the service checks the environment.",
            )
    valid = [token for token in known if token.expires_at is None or token.expires_at > installation.now]
    if not installation.settings.open_metrics and not any(Scope.METRICS in token.scopes for token in valid):
        yield warning(
            "/metrics needs a token (LIFELONG_OPEN_METRICS is off), and none has the scope metrics.",
            "Give one to Prometheus: `lifelong tokens create prometheus --scope metrics`.",
        )
    yield ok(f"{len(valid)} valid.")


def _of_expiry(installation: Installation, token: Token) -> Iterator[Finding]:
    if token.expires_at is None or abs(token.expires_at - installation.now) > EXPIRY_NOTICE:
        return
    verb = "expires" if token.expires_at > installation.now else "has expired"
    yield warning(
        f"the token {token.name} {verb} on {token.expires_at:%Y-%m-%d %H:%M} UTC.",
        f"Give its client a new secret: `lifelong tokens rotate {token.name}`, or revoke it.",
    )


def _is_in_use(installation: Installation, token: Token) -> bool:
    return token.last_used_at is not None and installation.now - token.last_used_at < IN_USE
