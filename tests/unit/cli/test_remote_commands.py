"""Which commands work on a remote service: what the documentation says, and what the code does."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import click

from lifelong.cli import cli
from lifelong.commands.connection import connect

OPERATING = Path(__file__).parents[3] / "docs" / "operating.md"


def leaves(command: click.Command, *names: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands with the words that call them."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield names, command
    if isinstance(command, click.Group):
        for name in command.commands:
            yield from leaves(command.commands[name], *names, name)


def names_in(code: CodeType) -> Iterator[str]:
    """The names that a function uses, in nested functions, too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def connects(function: Any, seen: set[Any]) -> bool:
    """Whether a function, or one that it uses, opens the connection of a command."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if not isinstance(function, FunctionType) or function in seen:
        return False
    seen.add(function)
    used = [function.__globals__.get(name) for name in names_in(function.__code__)]
    ours = [value for value in used if getattr(value, "__module__", "").startswith("lifelong.commands")]
    return connect in used or any(connects(value, seen) for value in ours)


def documented() -> dict[str, str]:
    """What the table says of each command with remote parts."""
    table = OPERATING.read_text().partition("| commands that work remotely |")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", table, re.MULTILINE))


def is_documented(words: tuple[str, ...], said: dict[str, str]) -> bool:
    command, *of_it = words
    text = said.get(command, "none")
    names = re.findall(r"`([a-z-]+)`", text)
    is_named = any(name in names for name in of_it)
    return not is_named if text.startswith("all") else is_named


def test_the_documentation_lists_the_commands_that_work_on_a_remote_service() -> None:
    said, commands = documented(), dict(leaves(cli))
    remote = {words for words, command in commands.items() if connects(command.callback, set())}
    assert {words for words in commands if words and is_documented(words, said)} == remote
    assert ("cycles", "replay") in remote
    assert ("export",) not in remote
