"""Commands that documentation, help and hints name can be typed: parsed by the command line, but not run."""

import ast
import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lifelong.cli import cli
from lifelong.commands.common import Name
from lifelong_core.settings import OTHER_VARIABLES, PolicySettings, Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PRODUCT = ("lifelong", "lifelong_core", "monitor", "service", "grafana")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


def texts() -> Iterator[tuple[str, str]]:
    """All pages, strings of the product code (X for each value in them) and templates, with their file."""
    for page in PAGES:
        yield page.name, page.read_text(encoding="utf-8")
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


TEXTS = list(texts())


def lines() -> Iterator[tuple[str, str]]:
    """Whole command lines: of blocks in pages, and of examples in help texts."""
    for where, text in TEXTS:
        if text.count("\n") < 3:
            continue
        joined = re.sub(r"\\\n\s*", "", text)
        blocks = (
            re.findall(r"^```sh\n(.*?)^```", joined, re.MULTILINE | re.DOTALL) if ".md" in where else [joined]
        )
        for block in blocks:
            for command in re.findall(r"^ *(?:\w+=\S+ )*lifelong ([a-z-]+(?: .*)?)$", block, re.MULTILINE):
                yield where, re.split(r"\s{3,}|\s#| [|&>]", command)[0]


def mentions() -> Iterator[tuple[str, str]]:
    """Commands in backticks, whose arguments may be left out."""
    for where, text in TEXTS:
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for command in re.findall(r"(?<!`)`(?:[A-Z_]+=\S+ )*lifelong ([a-z-][^`]*)`", prose):
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
    wrong = [
        f"{where}: {found}"
        for where, text in TEXTS
        for found in re.findall(r"pip install[^`\n]*(?:\n[^`\n]*)?|\blifelong\[[\w,]+\]", text)
        if re.search(r"\blifelong(?:\[|[\"'`\s]*$)", found.split("#")[0])
        or not {name for names in re.findall(r"\.\[([\w,]+)\]", found) for name in names.split(",")}
        <= set(EXTRAS)
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_that_texts_run_exist() -> None:
    named = {name for where, text in TEXTS for name in re.findall(r"python -m ([a-z_][\w.]*[\w])", text)}
    assert [
        name for name in sorted(named) if "NAME" not in name and importlib.util.find_spec(name) is None
    ] == []


def test_settings_that_the_product_names_exist() -> None:
    known = {f"LIFELONG_{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES
    known |= {f"LIFELONG_POLICY__{name.upper()}" for name in PolicySettings.model_fields}
    wrong = {
        f"{where}: {name}"
        for where, text in TEXTS
        for name in re.findall(r"\bLIFELONG_(?!X)[A-Z0-9_]*[A-Z0-9]\b", text)
        if name not in known
    }
    assert wrong == set()
