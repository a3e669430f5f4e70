"""`lifelong init` and `lifelong upgrade`: prepare the database, the group key and the first token."""

import click

from lifelong.commands.common import actor


@click.command(short_help="Prepare database, keys and the first token.")
def init() -> None:
    """Prepare database, artifacts and group key, and print the first admin token (once).

    Safe to repeat: an existing installation is left as it is, and no second token is made.
    """
    from lifelong_core.settings import Settings
    from lifelong_core.store import Scope, Store, load_group_key
    from lifelong_core.store.files import make_data_folder

    settings = Settings.load()
    make_data_folder(settings.data_directory)
    Store.migrate(settings.resolved_database_url)
    load_group_key(settings.resolved_group_key_file, create=True)
    with Store.open(
        settings.resolved_database_url, settings.resolved_artifacts_url, durability=settings.log_durability
    ) as store:
        if store.tokens.list():
            click.echo(
                f"{settings.data_directory} is ready; its tokens stay as they are (`lifelong tokens list`)."
            )
            return
        _, secret = store.tokens.create("first-admin", {Scope.ADMIN}, actor=actor())
    click.echo(f"Ready: {settings.data_directory.resolve()}", err=True)
    click.echo("The first admin token; it is shown only now, keep it safe:", err=True)
    click.echo(secret)


@click.command(short_help="Bring the database to this version's schema.")
def upgrade() -> None:
    """Bring the database to the schema of this version (stop service and monitor first)."""
    from lifelong_core.settings import Settings
    from lifelong_core.store import Store

    migration = Store.migrate(Settings.load().resolved_database_url)
    if migration.before == migration.after:
        click.echo(f"Nothing to do: the database has the schema of this version, {migration.after}.")
    elif migration.before is None:
        click.echo(f"The database was empty; it has the schema {migration.after} now.")
    else:
        click.echo(f"Upgraded the database from schema {migration.before} to {migration.after}.")
