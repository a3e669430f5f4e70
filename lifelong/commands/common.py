"""Helpers that several commands share: the store, the actor, names and counts."""

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lifelong_core.store import Store

url_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--url", help="URL of the running service; default: LIFELONG_HOST and LIFELONG_PORT."
)

as_json: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of a table."
)


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
        from lifelong_core.names import check_name

        field = (
            None
            if param is None
            else param.opts[0]
            if param.opts[0].startswith("-")
            else param.opts[0].upper()
        )
        return check_name(value, field=field or "name")


@contextmanager
def open_store() -> Iterator["Store"]:
    """The store that the settings name, closed at the end."""
    from lifelong_core.settings import Settings
    from lifelong_core.store import Store

    settings = Settings.load()
    with Store.from_settings(settings) as store:
        yield store


def service_url(url: str | None) -> str:
    """URL of the running service: as given, `http://` added where it has no scheme; None: that of the settings."""
    from lifelong_core.settings import Settings

    if url is None:
        settings = Settings.load()
        return f"http://{settings.host}:{settings.port}"
    return url if "://" in url else f"http://{url}"


def actor() -> str:
    """Actor in the audit log for changes made on the command line."""
    return f"cli:{getpass.getuser()}"


def format_count(count: int, noun: str) -> str:
    """A number with its noun: `1 key`, `2 keys`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
