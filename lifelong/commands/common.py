"""What several commands share: arguments and options, the store, the actor, names and counts."""

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from lifelong.printing import echo
from lifelong_core.configuration.plausibility import FORCE
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.files import ensure_temporary_folder
from lifelong_core.runtime.redaction import redact
from lifelong_core.store import Store
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from lifelong_core.values.names import check_name

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

JSON_HELP = "Print JSON instead of text."


class CommandGroup(click.Group):
    """A group whose help shows the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(limit=200)) for name, command in commands])


class Name(click.ParamType):
    """A name of an environment, task or model; an empty one, as of an unset shell variable, is refused."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Check the name.

        Raises:
            InvalidInputError: it is not legal.
        """
        field = (
            None
            if param is None
            else param.opts[0]
            if param.opts[0].startswith("-")
            else param.opts[0].upper()
        )
        return check_name(value, field=field or "name")


# A command takes what it acts on by position: TASK, MODEL, ENVIRONMENT, or a population: MODEL [ENVIRONMENT]. Where one
# of them only narrows (rows of a list, whose head), it is an option. Each is declared here, and nowhere else.

task_argument: Decorator = click.argument("task", type=Name())
model_argument: Decorator = click.argument("model")
environment_argument: Decorator = click.argument("environment", type=Name())


optional_model_argument: Decorator = click.argument("model", required=False)
default_environment_argument: Decorator = click.argument("environment", type=Name(), default="default")


def population_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add MODEL [ENVIRONMENT], by default the environment `default`."""
    return model_argument(default_environment_argument(command))


def task_option(help_text: str = "Only of this task.", **settings: Any) -> Decorator:
    """`--task`: the name of a task."""
    return click.option("--task", type=Name(), help=help_text, **settings)


def model_option(
    help_text: str = "Only of this model: its name, or name@version.", **settings: Any
) -> Decorator:
    """`--model`: a registered model."""
    return click.option("--model", help=help_text, **settings)


def environment_option(help_text: str = "Only of this environment.", **settings: Any) -> Decorator:
    """`--environment`: the name of an environment."""
    return click.option("--environment", type=Name(), help=help_text, **settings)


def images_argument(*, required: bool) -> Decorator:
    """IMAGES: folders, and CSV, tar or zip files."""
    return click.argument("images", nargs=-1, required=required, type=click.Path(exists=True, path_type=Path))


def output_option(help_text: str = "File to write.", *, required: bool = False) -> Decorator:
    """`--output`: the file of the result."""
    return click.option(
        "--output", type=click.Path(dir_okay=False, path_type=Path), required=required, help=help_text
    )


def replace_option(help_text: str = "Replace what is there already.") -> Decorator:
    """`--replace`: what exists is overwritten."""
    return click.option("--replace", is_flag=True, help=help_text)


def level_option(default: float = 0.95) -> Decorator:
    """`--level`: coverage of the intervals."""
    return click.option(
        "--level",
        type=click.FloatRange(0.5, 1, max_open=True),
        default=default,
        show_default=True,
        help="Coverage of the intervals.",
    )


def seed_option(help_text: str = "Seed of all draws.") -> Decorator:
    """`--seed`: with the same seed, the result is the same."""
    return click.option("--seed", type=click.IntRange(0, 2**62), default=0, show_default=True, help=help_text)


as_json: Decorator = click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
url_option: Decorator = click.option(
    "--url", help="URL of the running service; default: LIFELONG_HOST and LIFELONG_PORT."
)


@contextmanager
def local_store() -> Iterator[tuple[Store, Settings]]:
    """The store that the settings name, closed at the end, and the settings."""
    settings = Settings.load()
    ensure_temporary_folder(settings.data_directory)
    with Store.from_settings(settings) as store:
        yield store, settings


@contextmanager
def open_store() -> Iterator[Store]:
    """The store that the settings name, closed at the end.

    Raises:
        ConfigurationError: LIFELONG_URL names a service, and this command works only in the store of this machine.
    """
    if url := os.environ.get("LIFELONG_URL"):
        raise ConfigurationError(
            f"LIFELONG_URL names {redact(url)}, and this command works only in the store of this machine.",
            hint="Run it where the store is, with LIFELONG_URL unset; or use the HTTP API.",
        )
    with local_store() as (store, _):
        yield store


def service_url(url: str | None) -> str:
    """URL of the running service: as given, `http://` added where it has no scheme; None: that of the settings."""
    if url is None:
        return Settings.load().service_url
    return url if "://" in url else f"http://{url}"


def actor() -> str:
    """Actor in the audit log for changes made on the command line: the user, or its number where it has no name."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container under a user without an entry in /etc/passwd
        return f"cli:{os.getuid()}"


@contextmanager
def only_warned(*, hint: str = "") -> Iterator[None]:
    """Print what `plausibility` refuses in the block as a warning; `hint`: what it means later."""
    try:
        yield
    except InvalidInputError as error:
        echo(f"Warning: {str(error).removesuffix(FORCE)}{hint}".rstrip(), err=True)


def format_count(count: int, noun: str) -> str:
    """A number with its noun: `1 key`, `2 keys`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
