"""`lifelong knowledge trust`, `distrust`, `signers` and `key`: whose bundles are imported."""

import click

from lifelong.commands.common import Name, actor, as_json, open_store
from lifelong.commands.knowledge.group import knowledge
from lifelong.commands.tables import print_rows
from lifelong.printing import echo


@knowledge.command()
@click.argument("name", type=Name())
@click.argument("public_key")
def trust(name: str, public_key: str) -> None:
    """Import bundles that the owner of PUBLIC_KEY signs from now on, as those of NAME.

    Compare the key with its owner over another channel first, such as the telephone.
    """
    with open_store() as store:
        added = store.trusted_signers.add(name, public_key, actor=actor())
    echo(f"Bundles of {added.name} are imported from now on.")


@knowledge.command()
@click.argument("name", type=Name())
def distrust(name: str) -> None:
    """Refuse further bundles of NAME; entries that came with earlier ones stay."""
    with open_store() as store:
        store.trusted_signers.remove(name, actor=actor())
    echo(f"Bundles of {name} are refused from now on.")


@knowledge.command()
@as_json
def signers(*, as_json: bool) -> None:
    """List the trusted signers, and how many entries came from each."""
    with open_store() as store:
        origins = store.knowledge.state().origins
        rows = [
            {
                "name": signer.name,
                "entries": origins.get(signer.name, 0),
                "added_at": signer.added_at,
                "added_by": signer.added_by,
                "public_key": signer.public_key,
            }
            for signer in store.trusted_signers.list()
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
    from lifelong_core.configuration.settings import Settings
    from lifelong_core.store.knowledge.exchange import create_signing_key, read_signing_key

    path = Settings.load().resolved_signing_key_file
    found = read_signing_key(path)
    if found is None:
        found = create_signing_key(path)
        echo(f"Made the signing key {path}.", err=True)
    echo(found.public_key)
