"""`lifelong init` and `lifelong upgrade`: prepare the database, the group key, the mode and the first token."""

import sys
import tomllib
from pathlib import Path

import click

from lifelong.commands.common import actor, format_count
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings, settings_file
from lifelong_core.runtime.private_files import restrict_installation
from lifelong_core.runtime.redaction import redact
from lifelong_core.store import Scope, Store
from lifelong_core.store.access.audit_chain import AnchorFile
from lifelong_core.store.files import make_data_folder, make_private_file
from lifelong_core.store.lifecycle.group_keys import KeyFile, KeyInstallation, check_complete
from lifelong_core.store.lifecycle.privacy import parse_group_keys
from lifelong_core.values.errors import ConfigurationError


@click.command(short_help="Prepare database, keys and the first token.")
@click.option(
    "--group-key",
    "source",
    metavar="FILE",
    help="On a further host: a copy of the group.key of the first one, to install here; - reads standard input.",
)
@click.option(
    "--mode",
    type=click.Choice(["auto", "propose", "shadow"]),
    help="Write this mode to lifelong.toml: cycles swap heads (auto, the default), propose them, or only report.",
)
def init(source: str | None, *, mode: str | None) -> None:
    """Prepare database, artifacts and group key, and print the first admin token (once).

    Safe to repeat: an existing installation is left as it is, no second token is made, and what an interrupted `init`
    left out is done.

    On a further host of an installation (the same LIFELONG_DATABASE_URL and LIFELONG_ARTIFACTS_URL) it lists what this
    host lacks, and exits with status 1 until nothing is missing.
    """
    if mode is not None:
        write_mode(mode)
    settings = Settings.load()
    make_data_folder(settings.data_directory)
    Store.migrate(settings.resolved_database_url)
    with Store.from_settings(settings) as store:
        is_new = not store.tokens.list()
        if is_new and store.audit.newest() is None:
            _forget_former_anchor(AnchorFile(settings.audit_anchor_file))
        problems = [
            problem
            for problem in (_prepare_group_key(store, settings, source), _missing_artifacts(store, settings))
            if problem is not None
        ]
        if not is_new:
            echo(_already_there(store), err=bool(problems))
        _restrict_files(settings)
        echo(f"Mode: {settings.modes_in_words}.", err=True)
        for problem in problems:
            echo(f"Error: {problem}", fg="red", err=True)
        if store.database.is_postgresql and not settings.artifacts_url:
            echo(
                f"Note: artifacts are in {redact(settings.resolved_artifacts_url)}, on this host alone. For further"
                " hosts, name storage that all reach in LIFELONG_ARTIFACTS_URL.",
                err=True,
            )
        if problems and not is_new:
            echo("This host is not ready yet: fix that, then run `lifelong init` again.", err=True)
        else:
            echo(f"Ready: {settings.data_directory.resolve()}", err=True)
        if is_new:
            # Last, and shown before the commit: no interruption leaves an installation whose token was not shown.
            store.tokens.create("first-admin", {Scope.ADMIN}, actor=actor(), show=_show_first_token)
    if problems:
        sys.exit(1)


def _show_first_token(secret: str) -> None:
    echo("The first admin token; it is shown only now, keep it safe:", err=True)
    echo(secret)
    echo(
        "Give each client a token of its own, bound to its environment: `lifelong tokens create clinic-a --scope"
        " predict --scope feedback --environment clinic-a`.",
        err=True,
    )


@click.command(short_help="Upgrade the database schema to this version.")
def upgrade() -> None:
    """Upgrade the database to the schema of this version (stop service and monitor first)."""
    settings = Settings.load()
    migration = Store.migrate(settings.resolved_database_url)
    if migration.before == migration.after:
        echo(f"Nothing to do: the database has the schema of this version, {migration.after}.")
    elif migration.before is None:
        echo(f"The database was empty; it has the schema {migration.after} now.")
    else:
        echo(f"Upgraded the database from schema {migration.before} to {migration.after}.")
    if settings.resolved_group_key_file.exists():
        # The group key of this host becomes that of an installation whose database knows none yet.
        file = KeyFile.load(settings.resolved_group_key_file)
        with Store.from_settings(settings) as store:
            store.group_keys.confirm(file, actor=actor())
    _restrict_files(settings)


def _restrict_files(settings: Settings) -> None:
    """Remove the rights of other users that a copy or a restored backup left on files."""
    changed, foreign = restrict_installation(settings)
    if changed:
        echo(
            f"Files and folders that were open to other users: {changed}. Now only their owner can use them.",
            err=True,
        )
    if foreign:
        echo(
            f"Warning: others may use {foreign[0]}, and only its owner can change that (chmod go= {foreign[0]}).",
            err=True,
        )


def _forget_former_anchor(anchor: AnchorFile) -> None:
    """The audit log of a new database has nothing to do with the one that this host knew."""
    former = anchor.read()
    if former is not None:
        anchor.path.unlink()
        echo(f"The database is new. The audit log of the former one ended with {former}.", err=True)


def _prepare_group_key(store: Store, settings: Settings, source: str | None) -> str | None:
    """Make, install or compare the key file; return its problem, or None."""
    path = settings.resolved_group_key_file
    try:
        if source is not None:
            installed = store.group_keys.install(path, _read_key_file(source), actor=actor())
            file = installed.file
            echo(_describe_installed(installed), err=True)
        else:
            file = store.group_keys.create(path, actor=actor())
        check_complete(file, store.group_keys.known_digests())
    except ConfigurationError as error:
        return str(error)
    return None


def _describe_installed(installed: KeyInstallation) -> str:
    path = installed.file.path
    sentences = [f"Installed {path}; it holds {format_count(len(installed.file.keys), 'key')}."]
    if installed.set_aside is not None:
        sentences.append(
            f"This host had another key, under which this database has no group: it is in {installed.set_aside} now."
            " Delete that file if no other database needs it."
        )
    return "\n".join(sentences)


def _read_key_file(source: str) -> KeyFile:
    if source != "-":
        return KeyFile.load(Path(source))

    name = Path("standard input")
    return KeyFile(name, parse_group_keys(name, sys.stdin.read()))


def _missing_artifacts(store: Store, settings: Settings) -> str | None:
    """Name the artifacts that models need and LIFELONG_ARTIFACTS_URL lacks; None: all are there."""
    named = store.named_artifacts()
    missing = [name for digest, name in named.items() if not store.artifacts.has(digest)]
    if not missing:
        return None
    return (
        f"{len(missing)} of {len(named)} artifacts are not in {redact(settings.resolved_artifacts_url)}, the first is"
        f" {missing[0]}. Set LIFELONG_ARTIFACTS_URL to the same storage as on the host that added them"
        " (a folder there must be shared, or use object storage)."
    )


def _already_there(store: Store) -> str:
    held = ", ".join(
        format_count(len(rows), noun)
        for rows, noun in (
            (store.tasks.list(), "task"),
            (store.models.list(), "model"),
            (store.tokens.list(), "token"),
        )
    )
    return f"The database is in use already ({held}); its tokens stay as they are (`lifelong tokens list`)."


def write_mode(mode: str) -> None:
    """Make `mode` the common mode: in a new settings file, or as a new table at the end of the present one.

    Args:
        mode: auto, propose or shadow.

    Raises:
        ConfigurationError: the settings cannot be read; the file has a policy with another mode (its lines are never
            rewritten); it cannot be written; or a variable overrides it.
    """
    Settings.load()  # refuses a file that is no TOML or holds unknown settings
    file = settings_file()
    try:
        content = file.read_text(encoding="utf-8") if file.exists() else ""
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.", field="--mode") from error
    policy = tomllib.loads(content).get("policy")
    line = f'mode = "{mode}"'
    if policy is None:
        separator = "" if not content else "\n" if content.endswith("\n") else "\n\n"
        try:
            make_private_file(file)
            with file.open("a", encoding="utf-8") as opened:
                opened.write(f"{separator}[policy]\n{line}\n")
        except OSError as error:
            raise ConfigurationError(
                f"{file} cannot be written: {error.strerror}.", field="--mode"
            ) from error
    elif policy.get("mode", "auto") != mode:
        raise ConfigurationError(
            f"{file} has a policy already, and this command does not rewrite it.",
            field="--mode",
            hint=f"Write {line} under [policy] yourself, then repeat without --mode.",
        )
    in_force = Settings.load().policy.mode
    if in_force != mode:
        raise ConfigurationError(
            f"{file} says {mode}, but a variable sets {in_force}, which wins over the file.",
            field="--mode",
            hint="Unset LIFELONG_POLICY__MODE (or LIFELONG_POLICY), or change it there.",
        )
