"""Commands that documentation, help and hints name can be typed: parsed by the command line, but not run."""

import ast
import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from lifelong.cli import cli
from lifelong.commands.common import Name
from lifelong_core.configuration.notification_fields import NotificationSettings
from lifelong_core.configuration.settings import OTHER_VARIABLES, PolicySettings, Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PRODUCT = ("lifelong", "lifelong_core", "monitor", "service", "grafana", "benchmarks")
TYPED = re.compile(r"""(?<![\w./"'=-])lifelong (?!python )([a-z](?:"[^"]*"|'[^']*'|[^"'|&>;#])*)""")
"""A command line; `docker run IMAGE python -m lifelong serve` is one, too."""
EXAMPLE = re.compile(r"^ *(?:\w+=\S+ )*(?:[^|`]* \| )?lifelong [a-z-]+(?: .*)?$", re.MULTILINE)
"""A line of a help text that begins like a command."""
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


def texts() -> Iterator[tuple[str, str]]:
    """All pages, strings of the product code (X for each value in them) and templates, with their file."""
    for page in PAGES:
        yield page.name, page.read_text(encoding="utf-8")
    news = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## [")[1]
    # Without tables of former names; `jobs list/show` is `jobs list`.
    yield (
        "CHANGELOG.md",
        re.sub(r"^ *\|.*$|(?<=\w)[/|][\w/|-]+(?=`)|\[--[^]]*\]", "", news, flags=re.MULTILINE),
    )
    for folder in PRODUCT:
        for file in (ROOT / folder).rglob("*.html"):
            yield file.name, re.sub(r"</?code>", "`", file.read_text(encoding="utf-8"))
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", node.value
                elif isinstance(node, ast.JoinedStr):
                    parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", "".join(map(str, parts))


@cache
def all_texts() -> list[tuple[str, str]]:
    return list(texts())


def lines() -> Iterator[tuple[str, str]]:
    """Whole command lines: of blocks in pages, and of examples in help texts."""
    for where, text in all_texts():
        if text.count("\n") < 3:
            continue
        joined = re.sub(r"\\\n\s*", "", text)
        fences = re.findall(r"^ *```(sh|bash|console)\n(.*?)^ *```", joined, re.MULTILINE | re.DOTALL)
        blocks = [
            re.sub(r"^[^$].*$", "", block, flags=re.M) if kind == "console" else block
            for kind, block in fences
        ]
        for line in "\n".join(blocks if ".md" in where else EXAMPLE.findall(joined)).splitlines():
            for command in TYPED.findall(re.split(r"(?<=\S)\s{3,}|(?:^|\s)#", line)[0]):
                yield where, command.strip()


def mentions() -> Iterator[tuple[str, str]]:
    """Commands in backticks, whose arguments may be left out."""
    for where, text in all_texts():
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for command in re.findall(r"(?<!`)`(?:[A-Z_]+=\S+ )*(?:python -m )?lifelong ([a-z-][^`]*)`", prose):
            yield where, re.split(r" [|&>]", command)[0]


def parse(text: str) -> None:
    """Parse a command line, as the program does.

    Raises:
        click.UsageError: the program would refuse it.
    """
    words = shlex.split(" ".join(text.split()))
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(context, name)
        if found is None:
            raise click.UsageError(f"there is no command {name}")
        command = found
    if not isinstance(command, click.Group) and not {"-h", "--help"} & set(words):
        command.make_context("command", words)


@pytest.fixture(autouse=True)
def any_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, ids and names that examples hold need not exist."""
    for kind in (click.Path, click.File, type(click.UUID), Name):
        monkeypatch.setattr(kind, "convert", lambda _self, value, *_: value)
    monkeypatch.setenv("LIFELONG_TOKEN", "x")


def test_command_lines_can_be_typed() -> None:
    wrong = []
    found = list(lines())
    for where, command in found:
        try:
            parse(command)
        except Exception as error:  # noqa: BLE001 - all are listed
            wrong.append(f"{where}: lifelong {command}: {error}")
    assert not wrong, "\n".join(wrong)
    assert len(found) > 100


def test_commands_that_texts_mention_exist_with_their_options() -> None:
    wrong = []
    found = list(mentions())
    for where, command in found:
        try:
            parse(command)
        except (click.MissingParameter, click.BadParameter):
            continue  # arguments may be left out, or stand for values
        except click.UsageError as error:
            if "requires an argument" not in error.message:
                wrong.append(f"{where}: lifelong {command}: {error.message}")
        except Exception:  # noqa: BLE001 - a placeholder that is no value
            continue
    assert not wrong, "\n".join(wrong)
    assert len(found) > 200


def test_what_texts_install_exists() -> None:
    """Nobody owns the name `lifelong` where packages are published: whoever registers it would be installed."""
    wrong = []
    for where, text in all_texts():
        lines = re.findall(r"(?:pip|pip3|pipx|uv) (?:install|add)([^`\n#]*)", text)
        quoted = re.findall(r"(?<!`)`[^`]{0,80}pip install\s([^`]{1,200})`", text)
        for found in [*lines, *quoted, *re.findall(r"\blifelong\[[\w,]+\]", text)]:
            packages = [word.strip("\"'().,") for word in found.split()]
            extras = {name for names in re.findall(r"\.\[([\w,]+)\]", found) for name in names.split(",")}
            if any(re.match(r"lifelong(?:$|[-[=<>~!@])", name) for name in packages) or not extras <= set(
                EXTRAS
            ):
                wrong.append(f"{where}: {found}")
    assert not wrong, "\n".join(wrong)


def test_modules_that_texts_run_exist() -> None:
    named = {
        name for where, text in all_texts() for name in re.findall(r"python -m ([a-z_][\w.]*[\w])", text)
    }
    assert [
        name for name in sorted(named) if "NAME" not in name and importlib.util.find_spec(name) is None
    ] == []


def test_settings_that_the_product_names_exist() -> None:
    known = {f"LIFELONG_{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES
    for group, settings in {"POLICY": PolicySettings, "NOTIFICATIONS": NotificationSettings}.items():
        known |= {f"LIFELONG_{group}__{name.upper()}" for name in settings.model_fields}
    wrong = {
        f"{where}: {name}"
        for where, text in all_texts()
        for name in re.findall(r"\bLIFELONG_(?!X)[A-Z0-9_]*[A-Z0-9]\b", text)
        if name not in known
    }
    assert wrong == set()
