"""`lifelong erase` and `lifelong rotate-group-key`: the privacy of patients."""

import sys

import click

from lifelong.commands.common import actor, format_count, open_store
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.store.lifecycle.erasure import ErasureOutcome
from lifelong_core.store.lifecycle.group_keys import short_digest
from lifelong_core.store.lifecycle.privacy import group_hashes


@click.command(short_help="Erase the logged predictions of a patient or study.")
@click.option(
    "--group",
    required=True,
    help="The group key of the predictions; - reads it from standard input, so that no shell history holds it.",
)
@click.option("--dry-run", is_flag=True, help="Only count what would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def erase(group: str, *, dry_run: bool, yes: bool) -> None:
    """Erase the predictions of a group with their labels and request ids, for good.

    Its predictions that still wait in a spool are dropped at delivery. Its later predictions are logged again.
    """
    if group == "-":
        group = sys.stdin.readline().rstrip("\r\n")
    with open_store() as store:
        path = Settings.load().resolved_group_key_file
        hashes = group_hashes(store.group_keys.erasing_keys(path, actor=actor()), group)
        if dry_run or not yes:
            echo(f"There are {_named(store.erasure.count(hashes))} of this group.")
        if dry_run:
            return
        if not yes:
            click.confirm("Erase them for good?", abort=True)
        echo(f"Erased {_named(store.erasure.erase(hashes, actor=actor()))}.")


@click.command("rotate-group-key", short_help="Add a new key for the hashes of groups.")
def rotate_group_key() -> None:
    """Put a new key in front of the others in the key file; then copy the file to all other hosts.

    Predictions of one patient before and after the rotation count as those of two patients. The old keys stay in the
    file: without them, earlier predictions can no longer be erased.
    """
    path = Settings.load().resolved_group_key_file
    with open_store() as store:
        file = store.group_keys.rotate(path, actor=actor())
    echo(f"{path} holds {format_count(len(file.keys), 'key')} now; new predictions use the first one.")
    echo(
        "Copy the file to all other machines of this installation; their services take it over by themselves."
    )


@click.command("forget-group-keys", short_help="Forget lost keys of the group hash.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget_group_keys(*, yes: bool) -> None:
    """Forget the keys that the key file of this host lacks, because they are lost or no longer used.

    Predictions under a forgotten key can no longer be erased by their group. If every key is lost, a new one is made,
    or the key in the file of this host becomes the key of the installation.
    """
    path = Settings.load().resolved_group_key_file
    with open_store() as store:
        lost = store.group_keys.forgettable(path)
        if not lost:
            echo(f"Nothing to do: {path} holds all keys of this installation.")
            return
        known = len(store.group_keys.known_digests())
        named = ", ".join(map(short_digest, lost))
        echo(f"{path} lacks {len(lost)} of {format_count(known, 'key')}: {named}.")
        if not yes:
            click.confirm("Forget them? What was logged under them can no longer be erased", abort=True)
        file = store.group_keys.forget(path, lost, actor=actor())
    echo(f"Forgotten. {path} holds {format_count(len(file.keys), 'key')}; copy it to all other machines.")


def _named(erased: ErasureOutcome) -> str:
    return (
        f"{erased.predictions} predictions, {erased.labels} labels with {erased.label_revisions} revisions and"
        f" {erased.requests} request ids"
    )
