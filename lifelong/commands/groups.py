"""`lifelong erase` and `lifelong rotate-group-key`: the privacy of patients."""

import sys
from typing import TYPE_CHECKING

import click

from lifelong.commands.common import actor, open_store

if TYPE_CHECKING:
    from lifelong_core.store.erasure import Erased


@click.command(short_help="Erase all that was logged of a patient or study.")
@click.option(
    "--group",
    required=True,
    help="The key that the predictions were sent with; - reads it from standard input, for it to be in no history.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def erase(group: str, *, dry_run: bool, yes: bool) -> None:
    """Erase the predictions of a group with their labels and request ids, for good.

    What still waits in a spool is left out when it is delivered. What is predicted of the group from now on is logged
    again.
    """
    from lifelong_core.settings import Settings
    from lifelong_core.store.privacy import group_hashes, load_group_keys

    if group == "-":
        group = sys.stdin.readline().rstrip("\r\n")
    hashes = group_hashes(load_group_keys(Settings.load().resolved_group_key_file), group)
    with open_store() as store:
        if dry_run or not yes:
            click.echo(f"There are {_named(store.erasure.count(hashes))} of this group.")
        if dry_run:
            return
        if not yes:
            click.confirm("Erase them for good?", abort=True)
        click.echo(f"Erased {_named(store.erasure.erase(hashes, actor=actor()))}.")


@click.command("rotate-group-key", short_help="Make a new key for the hashes of groups.")
def rotate_group_key() -> None:
    """Put a new key in front of the others in the key file; then restart all services.

    Predictions of one patient before and after count as those of two. The old keys stay in the file: without them, what
    was logged before can no longer be erased.
    """
    from lifelong_core.settings import Settings
    from lifelong_core.store.privacy import rotate_group_key as rotate

    path = Settings.load().resolved_group_key_file
    keys = rotate(path)
    click.echo(f"{path} holds {keys} keys now; new predictions use the first one.")
    click.echo("Copy the file to all machines of this installation, then restart their services.")


def _named(erased: "Erased") -> str:
    return f"{erased.predictions} predictions, {erased.labels} labels and {erased.requests} request ids"
