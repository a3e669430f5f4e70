"""`lifelong tokens`: bearer tokens of the HTTP API."""

import click

from lifelong.commands.common import actor, as_json, open_store
from lifelong.commands.tables import print_rows


@click.group(short_help="Bearer tokens: create, list, revoke.")
def tokens() -> None:
    """Bearer tokens: create, list, revoke. Only hashes are stored."""


@tokens.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["predict", "feedback", "read", "operate", "admin"]),
    help="May be given several times; operate includes read, admin includes all.",
)
def create(name: str, scopes: tuple[str, ...]) -> None:
    """Create the token NAME and print its secret (once)."""
    from lifelong_core.store import Scope

    with open_store() as store:
        _, secret = store.tokens.create(name, {Scope(scope) for scope in scopes}, actor=actor())
    click.echo(f"Token {name}; its secret is shown only now:", err=True)
    click.echo(secret)


@tokens.command("list")
@as_json
def list_(*, as_json: bool) -> None:
    """List all tokens without their secrets."""
    with open_store() as store:
        rows = [
            {
                "name": token.name,
                "scopes": ", ".join(sorted(token.scopes)),
                "created_at": token.created_at,
                "revoked_at": token.revoked_at,
            }
            for token in store.tokens.list()
        ]
    print_rows(rows, as_json=as_json, empty="No token yet: `lifelong init`.")


@tokens.command()
@click.argument("name")
def revoke(name: str) -> None:
    """Revoke the token NAME; workers refuse it within a second."""
    with open_store() as store:
        store.tokens.revoke(name, actor=actor())
    click.echo(f"Revoked {name}.")
