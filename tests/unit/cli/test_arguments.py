"""The same thing is given in the same way to every command."""

import re
from pathlib import Path

import click
import pytest

import lifelong.commands
from lifelong.cli import cli

SHARED = ("task", "model", "environment", "images", "output", "replace", "level", "seed", "json")
COMMANDS = Path(lifelong.commands.__file__).parent
OLD_NAMES = {"--out", "--force", "--confidence"}


def walk(command: click.Command, path: tuple[str, ...] = ()) -> dict[str, click.Command]:
    """All commands by their words."""
    if not isinstance(command, click.Group):
        return {" ".join(path): command}
    return {
        words: found
        for name, child in command.commands.items()
        for words, found in walk(child, (*path, name)).items()
    }


ALL = walk(cli)


def test_what_several_commands_take_is_declared_once() -> None:
    declared = re.compile(rf'click\.(?:option|argument)\(\s*"(?:--)?({"|".join(SHARED)})"')
    twice = {
        file.relative_to(COMMANDS): declared.findall(file.read_text(encoding="utf-8"))
        for file in COMMANDS.rglob("*.py")
        if file.name != "common.py"
    }
    assert {file: names for file, names in twice.items() if names} == {}
    assert set(declared.findall((COMMANDS / "common.py").read_text(encoding="utf-8"))) == set(SHARED)


@pytest.mark.parametrize("words", ALL)
def test_a_command_takes_what_it_acts_on_by_position_and_the_rest_by_options(words: str) -> None:
    arguments = [param.name for param in ALL[words].params if isinstance(param, click.Argument)]
    options = {
        name: param for param in ALL[words].params if isinstance(param, click.Option) for name in param.opts
    }
    subjects = [name for name in ("task", "model", "environment") if name in arguments]
    assert arguments[: len(subjects)] == subjects, "first the task, the model, then the environment"
    assert not {f"--{name}" for name in subjects} & options.keys(), "one way only"
    required = {
        name for name in ("--task", "--model", "--environment") if name in options and options[name].required
    }
    assert required <= ({"--task"} if words == "models add" else set()), "an option narrows"
    assert not OLD_NAMES & options.keys()
    assert "--output" not in options or "HTML" not in (options["--output"].help or ""), "a page is --html"
