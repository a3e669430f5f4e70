"""`lifelong knowledge`: what is known of tasks, here and at other institutions."""

import json
from pathlib import Path

import click

from lifelong.commands.common import (
    CommandGroup,
    Name,
    actor,
    as_json,
    format_count,
    open_store,
    output_option,
    replace_option,
    task_argument,
)
from lifelong.commands.connection import connect
from lifelong.commands.knowledge.entries import enter, entry_row, print_entry, read_entry
from lifelong.commands.operation_command import operation_command
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.knowledge.transfer_folder import read_knowledge_folder
from lifelong_core.entities.develop.knowledge import (
    LOCAL,
    PUBLISHED,
    ImportAnswer,
    ImportOutcome,
    KnowledgeSummary,
)
from lifelong_core.operations.develop.knowledge import (
    DeleteKnowledge,
    ListKnowledge,
    ListSigners,
    NewSigner,
    RemoveSigner,
    ShowKnowledge,
)
from lifelong_core.store import Store
from lifelong_core.store.files import write_whole
from lifelong_core.store.knowledge.exchange import (
    create_signing_key,
    export_bundle,
    import_bundle,
    read_signing_key,
)
from lifelong_core.values.errors import InvalidInputError

_PAGE = 1000
"""Entries that are read at once."""


@click.group(cls=CommandGroup, short_help="List, import and export what is known of tasks.")
def knowledge() -> None:
    """The knowledge base: task cards, fingerprints and trainings of tasks, here and at other institutions.

    `lifelong neighbours` asks it what to transfer from which task. Institutions exchange knowledge as signed bundles,
    which hold no image.

    \b
    Examples:
      lifelong knowledge import outcomes/             published outcomes, where you have them
      lifelong knowledge key                          public key of this installation, for others
      lifelong knowledge export --output our.bundle
      lifelong knowledge trust clinic-b 9f2c...       after comparing the key by telephone
      lifelong knowledge import theirs.bundle
    """


@knowledge.command("list")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Largest number of entries.",
)
@click.option("--after", type=Name(), help="Only tasks after this name: the next page.")
@as_json
def list_(limit: int, after: str | None, *, as_json: bool) -> None:
    """List the tasks of the knowledge base by name."""
    entries: list[KnowledgeSummary] = []
    with connect() as connection:
        while True:
            left = min(limit - len(entries), _PAGE)
            page = connection.send(ListKnowledge.read({"limit": left, "after": after}))
            entries += page.entries
            after = page.next
            if after is None or len(entries) == limit:
                break
    rows = [entry_row(entry) for entry in entries]
    if not as_json:
        rows = [{**row, "origin": "" if row["origin"] == LOCAL else f"from {row['origin']}"} for row in rows]
    empty = "No entry." if page.total else "No entry yet: `lifelong knowledge import`."
    print_rows(rows, as_json=as_json, empty=empty, below="origin")
    if as_json or not entries:
        return
    fitted = "no ranker is fitted yet"
    if page.ranker is not None:
        fitted = f"the ranker was fitted {page.ranker.fitted_at:%Y-%m-%d}"
    counts = f"{format_count(page.transfers, 'transfer')}, {format_count(page.fingerprints, 'fingerprint')}"
    echo(wrap_text(f"{len(entries)} of {format_count(page.total, 'task')}; in all {counts}; {fitted}."))


@knowledge.command()
@task_argument
@as_json
def show(task: str, *, as_json: bool) -> None:
    """Show what is known of TASK: its card, its fingerprints and the transfers to it; --json has all values."""
    with connect() as connection:
        shown = connection.send(ShowKnowledge(task=task))
    if as_json:
        echo(json.dumps(shown.to_document()))
    else:
        print_entry(shown)


@knowledge.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def add(file: Path) -> None:
    """Enter a task, or replace its entry, from the JSON FILE: an entry, or a card alone.

    A card is what `lifelong fingerprint make --card` writes; the trainings of a known task stay. An entry is what
    `lifelong knowledge show TASK --json` holds under "entry": card, trainings, licence and contact.
    """
    new = read_entry(file)
    with connect() as connection:
        entered = enter(connection, new)
    trainings = (entered.entry or {}).get("trainings", ())
    echo(f"Entered {entered.task}: {format_count(len(trainings), 'training')}.")


@knowledge.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@replace_option("Replace also entries of another origin, such as local ones.")
@click.option(
    "--accept-unsigned", is_flag=True, help="Import a bundle without a signature: anyone may have changed it."
)
@as_json
def import_(path: Path, *, replace: bool, accept_unsigned: bool, as_json: bool) -> None:
    """Import the bundle, or the folder of published outcomes, at PATH: all of it, or nothing.

    A bundle is imported if a trusted signer (`lifelong knowledge trust`) or this installation has signed it. A folder
    holds transfer_*.npz and tasks_*.csv, in the layout of the outcomes of Godau et al. (task-fingerprinting, 2024).
    """
    with open_store() as store:
        if path.is_dir():
            signer, outcome = PUBLISHED, _import_folder(store, path, replace=replace)
        else:
            outcome = _import_file(store, path, replace=replace, accept_unsigned=accept_unsigned)
            signer = outcome.signer
        is_fitting = any(job.kind == "rank" for job in store.jobs.list(state="queued"))
    if as_json:
        named = {"added": outcome.added, "changed": outcome.changed, "unchanged": outcome.unchanged}
        echo(json.dumps({"signer": signer, **named}))
        return
    echo(
        f"Imported {path} ({signer}): {len(outcome.added)} new, {len(outcome.changed)} changed,"
        f" {len(outcome.unchanged)} unchanged."
    )
    if is_fitting:
        echo(
            wrap_text(
                "A job to fit the ranker and to index the fingerprints waits for a monitor (`lifelong monitor`)."
            )
        )


@knowledge.command()
@click.argument("tasks", nargs=-1, type=Name())
@output_option("File of the bundle.", required=True)
def export(tasks: tuple[str, ...], output: Path) -> None:
    """Write TASKS, or all that were entered here, as a signed bundle.

    It holds cards, trainings and fingerprints, no image; fingerprints that hold features of single images are left out.
    The private key is in LIFELONG_SIGNING_KEY_FILE; the receiver needs the public one (`lifelong knowledge key`).
    """
    key_file = Settings.load().resolved_signing_key_file
    with open_store() as store:
        content = export_bundle(store, key_file, tasks=tasks or None, actor=actor())
    write_whole(output, content)
    echo(f"Wrote {output}, {len(content) / 1000:.1f} kB.")


@knowledge.command()
@task_argument
def delete(task: str) -> None:
    """Delete the entry of TASK with its fingerprints; trainings of other tasks that name it as their source stay."""
    with connect() as connection:
        shown = connection.send(ShowKnowledge(task=task))
        connection.send(DeleteKnowledge(task=task))
    echo(f"Deleted {task} with {format_count(len(shown.fingerprints), 'fingerprint')}.")


@knowledge.command()
def refit() -> None:
    """Let a monitor fit the ranker on the outcomes of the knowledge base, and index its fingerprints, again.

    Every change of the knowledge base does this by itself.
    """
    with open_store() as store:
        job = store.knowledge.request_refit(actor=actor())
        state = store.knowledge.state()
    if job is not None:
        echo(f"Submitted the job {job.id}.")
    elif state.transfers or state.fingerprints:
        echo("A job to fit the ranker waits already.")
    else:
        echo(
            wrap_text(
                "There is nothing to fit the ranker on: the knowledge base holds neither transfers nor fingerprints."
            )
        )


@knowledge.command()
@as_json
def signers(*, as_json: bool) -> None:
    """List the trusted signers, and how many entries came from each."""
    with connect() as connection:
        trusted = connection.send(ListSigners()).signers
        origins = connection.send(ListKnowledge(limit=1)).origins
    rows = [
        {
            "name": signer.name,
            "entries": origins.get(signer.name, 0),
            "added_at": signer.added_at,
            "added_by": signer.added_by,
            "public_key": signer.public_key,
        }
        for signer in trusted
    ]
    print_rows(
        rows, as_json=as_json, empty="No trusted signer: `lifelong knowledge trust`.", below="public_key"
    )


@knowledge.command()
def key() -> None:
    """Print the public key of this installation, for `lifelong knowledge trust` elsewhere; make the key if needed.

    The private key is in LIFELONG_SIGNING_KEY_FILE: keep it secret and in the backup, and copy it to other hosts of the
    installation that export.
    """
    path = Settings.load().resolved_signing_key_file
    found = read_signing_key(path)
    if found is None:
        found = create_signing_key(path)
        echo(f"Made the signing key {path}.", err=True)
    echo(found.public_key)


knowledge.add_command(
    operation_command(
        NewSigner,
        "trust",
        is_position=("name", "public_key"),
        text=lambda added, _: f"Bundles of {added.name} are imported from now on.",
        help_text="""Import bundles that the owner of PUBLIC_KEY signs from now on, as those of NAME.

        Compare the key with its owner over another channel first, such as the telephone.
        """,
    )
)
knowledge.add_command(
    operation_command(
        RemoveSigner,
        "distrust",
        text=lambda removed, _: f"Bundles of {removed.removed} are refused from now on.",
        help_text="Refuse further bundles of NAME; entries that came with earlier ones stay.",
    )
)


def _import_folder(store: Store, folder: Path, *, replace: bool) -> ImportOutcome:
    base = read_knowledge_folder(folder)
    return store.knowledge.import_base(base, origin=PUBLISHED, replace=replace, actor=actor())


def _import_file(store: Store, path: Path, *, replace: bool, accept_unsigned: bool) -> ImportAnswer:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}).", field="PATH") from error
    return import_bundle(
        store,
        content,
        Settings.load().resolved_signing_key_file,
        replace=replace,
        accept_unsigned=accept_unsigned,
        actor=actor(),
    )
