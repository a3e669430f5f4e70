"""`lifelong tokens`: bearer tokens of the HTTP API."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from lifelong.commands.common import (
    CommandGroup,
    Name,
    as_json,
    environment_option,
    format_count,
)
from lifelong.commands.connection import connect
from lifelong.commands.durations import Duration, Moment
from lifelong.commands.operation_command import operation_command
from lifelong.commands.tables import print_rows
from lifelong.printing import echo
from lifelong_core.entities.access import Scope, TokenAnswer
from lifelong_core.operations.administration.environments import ListEnvironments
from lifelong_core.operations.administration.tokens import (
    EndSessions,
    ListSessions,
    ListTokens,
    NewToken,
    RevokeToken,
    Rotation,
    TokenWithSecret,
)

expires_in: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--expires-in", type=Duration(), metavar="SPAN", help="Lifetime of the token: 90d, 24h."
)
expires_at: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--expires-at", type=Moment(), metavar="TIME", help="End of the token's validity: 2027-01-31."
)


@click.group(cls=CommandGroup, short_help="Create, list, rotate and revoke bearer tokens.")
def tokens() -> None:
    """Bearer tokens of the HTTP API, and the console sessions that were opened with them.

    Only hashes of secrets are stored.
    """


@tokens.command()
@click.argument("name", type=Name())
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["predict", "feedback", "metrics", "read", "operate", "admin"]),
    help="May be given several times; operate includes read, admin includes all.",
)
@environment_option(
    "Predict and label only there; may be given several times, and adds the environment if it is new. With"
    " exactly one, requests that name no environment get it.",
    multiple=True,
)
@expires_in
@expires_at
def create(
    name: str,
    scopes: tuple[str, ...],
    environment: tuple[str, ...],
    expires_in: timedelta | None,
    expires_at: datetime | None,
) -> None:
    """Create the token NAME and print its secret (once)."""
    new = NewToken(
        name=name,
        scopes={Scope(scope) for scope in scopes},
        expires_at=_expiry(expires_in, expires_at),
        environments=list(environment) or None,
    )
    with connect() as connection:
        known = connection.send(ListEnvironments()).environments if environment else ()
        token = connection.send(new)
    if added := sorted(set(environment) - set(known)):
        echo(f"Added the environments: {', '.join(added)}.", err=True)
    if "predict" in scopes and not environment:
        echo(
            "Note: it may predict in every environment. --environment NAME binds a token to those of its client.",
            err=True,
        )
    _print_secret(token)


def _row(token: TokenAnswer) -> dict[str, Any]:
    return {
        "name": token.name,
        "scopes": ", ".join(sorted(token.scopes)),
        "environments": token.binding,
        "created_at": token.created_at,
        "rotated_at": token.rotated_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }


tokens.add_command(
    operation_command(
        ListTokens,
        "list",
        rows=lambda answer: [_row(token) for token in answer.tokens],
        empty="No token yet: `lifelong init`.",
    )
)


@tokens.command()
@click.argument("name", type=Name())
@click.option(
    "--overlap",
    type=Duration(),
    default="24h",
    show_default=True,
    metavar="SPAN",
    help="The present secret stays valid for this time; 0s if others may know it.",
)
@expires_in
@expires_at
def rotate(name: str, overlap: timedelta, expires_in: timedelta | None, expires_at: datetime | None) -> None:
    """Give the token NAME a new secret and print it (once); name, scopes and environments stay.

    A token that expires gets the same time again, unless another one is named.
    """
    rotation = Rotation(
        name=name,
        overlap_seconds=int(overlap.total_seconds()),
        expires_at=_expiry(expires_in, expires_at),
    )
    with connect() as connection:
        token = connection.send(rotation)
    if token.previous_expires_at is not None:
        echo(f"The secret before is valid until {_shown(token.previous_expires_at)}.", err=True)
    _print_secret(token)


tokens.add_command(operation_command(RevokeToken, "revoke", text=lambda _, call: f"Revoked {call.name}."))


@tokens.command()
@click.argument("name", type=Name(), required=False)
@as_json
def sessions(name: str | None, *, as_json: bool) -> None:
    """List the open sessions of the console: of the token NAME, or of all."""
    with connect() as connection:
        rows = [vars(session) for session in connection.send(ListSessions(name=name)).sessions]
    print_rows(rows, as_json=as_json, empty="Nobody is logged in to the console.")


tokens.add_command(
    operation_command(
        EndSessions,
        "log-out",
        text=lambda answer, call: f"Ended {format_count(answer.ended, 'session')} of {call.name}.",
    )
)


def _expiry(span: timedelta | None, moment: datetime | None) -> datetime | None:
    if span is not None and moment is not None:
        raise click.UsageError("Give either --expires-in or --expires-at.")
    try:
        return moment if span is None else datetime.now(UTC) + span
    except OverflowError as error:
        raise click.UsageError("--expires-in leads beyond the calendar; leave it out.") from error


def _print_secret(token: TokenWithSecret) -> None:
    until = "" if token.expires_at is None else f", valid until {_shown(token.expires_at)}"
    echo(f"Token {token.name}{until}; its secret is shown only now:", err=True)
    echo(token.secret)


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
