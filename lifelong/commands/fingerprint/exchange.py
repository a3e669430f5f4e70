"""`lifelong fingerprint import` and `export`: files from and to the knowledge base of this installation."""

from pathlib import Path

import click

from lifelong.commands.common import (
    actor,
    open_store,
    output_option,
    replace_option,
    task_argument,
    task_option,
)
from lifelong.commands.connection import LocalStore
from lifelong.commands.fingerprint.files import read_fingerprint_file, write_file
from lifelong.commands.knowledge.entries import enter, read_card
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes
from lifelong_core.entities.develop.knowledge import FingerprintRecord, KnowledgeRecord
from lifelong_core.operations.operation import Context
from lifelong_core.values.errors import InvalidInputError, NotFoundError


@click.command("import", short_help="Put a fingerprint of a task into the knowledge base.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@task_option("A task of the knowledge base, or a registered one.")
@click.option(
    "--card",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Card of the task (JSON), as `fingerprint make --card` wrote it; enters the task, or changes its card.",
)
def import_(file: Path, task: str | None, card: Path | None) -> None:
    """Put the fingerprint FILE into the knowledge base of this installation.

    It replaces one of the same kind, extractor and number of bins. Give --task, or --card for a new task.
    """
    fingerprint = read_fingerprint_file(file)
    known = None if card is None else read_card(card)
    name = task or (known.name if known else None)
    if name is None:
        raise InvalidInputError("name the task of the fingerprint.", field="--task", hint="Or give --card.")
    if known is not None and known.name != name:
        raise InvalidInputError(f"the card is of {known.name}.", field="--task", hint="Leave --task out.")
    with open_store() as store:
        if known is not None:
            here = LocalStore(Context(store, Settings.load(), actor(), patience_seconds=0))
            enter(here, known)
        record = store.knowledge.put_fingerprint(name, fingerprint, actor=actor())
    echo(f"Stored the fingerprint {record.digest[:12]} ({record.kind}) of {name}.")


@click.command(short_help="Write a fingerprint of the knowledge base into a file.")
@task_argument
@click.option("--kind", help="Kind of the fingerprint, if the task has several.")
@click.option("--bins", type=int, help="Its number of bins, if the task has several.")
@click.option("--unshareable", is_flag=True, help="Also a fingerprint that can identify images.")
@output_option(required=True)
@replace_option()
def export(
    task: str, kind: str | None, bins: int | None, output: Path, *, unshareable: bool, replace: bool
) -> None:
    """Write a fingerprint of TASK from the knowledge base of this installation into a file."""
    with open_store() as store:
        record = _choose(store.knowledge.get(task), kind, bins)
        fingerprint = fingerprint_from_bytes(store.artifacts.get(record.artifact))
    if not fingerprint.is_shareable and not unshareable:
        raise InvalidInputError(
            "it holds features of single images, which can identify them.",
            field="--unshareable",
            hint="Give --unshareable if the file stays in your institution.",
        )
    write_file(output, fingerprint.to_bytes(), replace=replace)
    echo(f"Wrote {output}: {fingerprint.kind}, {output.stat().st_size} bytes.")


def _choose(entry: KnowledgeRecord, kind: str | None, bins: int | None) -> FingerprintRecord:
    """The only fingerprint that fits.

    Raises:
        NotFoundError: none fits.
        InvalidInputError: several fit.
    """
    found = [
        record for record in entry.fingerprints if kind in (None, record.kind) and bins in (None, record.bins)
    ]
    if not found:
        raise NotFoundError(f"{entry.task} has no such fingerprint.", field="TASK")
    if len(found) > 1:
        held = "; ".join(
            record.kind + ("" if record.bins is None else f" of {record.bins} bins") for record in found
        )
        raise InvalidInputError(
            f"{entry.task} has several fingerprints: {held}.", field="--kind", hint="Give --kind and --bins."
        )
    return found[0]
