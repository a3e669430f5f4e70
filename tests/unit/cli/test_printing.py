"""How the command line prints entries and tables."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.table import Table

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong.rich_console import Console
from lifelong_core.develop.fingerprints.fisher import KeywordFingerprint
from tests.unit.store.knowledge_samples import make_entry

CLIPBOARD = "\x1b]52;c;Y3VybCBldmls\x07"
"""OSC 52: puts a command into the clipboard of the reader."""
HOSTILE = f"skin{CLIPBOARD}\x9b2J\u202egnp.\u2066\x1b[8m"
SHOWN = r"skin\x1b]52;c;Y3VybCBldmls\x07\u009b2J\u202egnp.\u2066\x1b[8m"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def said(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == status, result.output
    assert COMMANDS.findall(result.output) == []
    return result.output


def test_an_entry_commands_no_terminal(installed) -> None:
    installed("knowledge", "list")
    for field in ("dataset", "modality", "keywords", "licence"):
        value = (HOSTILE,) if field == "keywords" else HOSTILE
        entry = make_entry("moles")
        with open_store() as store:
            changed = {field: value}
            card = entry.card if field == "licence" else entry.card.model_copy(update=changed)
            kept = entry.model_copy(update={"card": card, **(changed if field == "licence" else {})})
            store.knowledge.put(kept, actor="tests")
        assert SHOWN in re.sub(r"\s", "", said("knowledge", "show", "moles"))
        document = json.loads(said("knowledge", "show", "moles", "--json"))
        assert document["entry"] == kept.to_document()


def test_a_fingerprint_and_its_name_command_no_terminal(installed, tmp_path: Path) -> None:
    file = tmp_path / "\x1b[31m.npz"
    file.write_bytes(KeywordFingerprint((HOSTILE,)).to_bytes())
    shown = said("fingerprint", "show", file.name)
    assert SHOWN.casefold() in shown
    assert r"\x1b[31m.npz" in shown
    Path("\x1b[2J").mkdir()
    assert r"\x1b[2J" in said("fingerprint", "show", "\x1b[2J", status=2)  # an error that click prints


def test_a_row_of_a_table_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"name": "clinic\nforged\x1b[2J"}], as_json=False, empty="")
    assert capsys.readouterr().out == "name\nclinic\\nforged\\x1b[2J\n"


def test_a_json_document_with_unescaped_characters_stays_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    entry = make_entry().model_copy(update={"licence": HOSTILE})
    echo(entry.to_json())
    printed = capsys.readouterr().out
    assert COMMANDS.findall(printed) == []
    assert json.loads(printed) == entry.to_document()


def test_rich_keeps_its_styles_and_shows_those_of_texts(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(force_terminal=True, width=200)
    table = Table("[bold]name")
    table.add_row(HOSTILE)
    console.print(table, style="red")
    console.print(f"[link=https://evil.example]{HOSTILE} :sick:")
    printed = capsys.readouterr().out
    ours = re.compile(r"\x1b\[[0-9;]*m")
    assert ours.search(printed)
    assert COMMANDS.findall(ours.sub("", printed)) == []
    without_bell = SHOWN.replace(r"\x07", "")  # which Rich removes
    assert f"[link=https://evil.example]{without_bell} :sick:" in ours.sub("", printed)


NOON = datetime(2026, 1, 1, 12, 30, 15, tzinfo=UTC)
ROWS = [
    {"version": 1, "active_in": "(default head)", "since": NOON, "text": "short"},
    {"version": 12, "active_in": None, "since": None, "text": "a [b] " * 12 + "end"},
]


def printed(capsys: pytest.CaptureFixture[str], **options: object) -> str:
    print_rows(ROWS, **{"as_json": False, "empty": "nothing", **options})  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_a_pipe_gets_one_line_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = printed(capsys, below="text").splitlines()
    assert lines[:2] == [
        "version  active in       since              text",
        "1        (default head)  2026-01-01 12:30Z  short",
    ]
    assert lines[2].split(maxsplit=1) == ["12", ROWS[1]["text"]]
    assert len(lines) == 3


def test_a_text_moves_below_its_row_where_this_makes_the_table_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "48")
    lines = printed(capsys, below="text").splitlines()
    assert lines[:3] == [
        "version  active in       since",
        "1        (default head)  2026-01-01 12:30Z",
        "    short",
    ]
    assert lines[3] == "12"
    assert " ".join(line.strip() for line in lines[4:]) == ROWS[1]["text"]
    assert max(map(len, lines)) <= 48


@pytest.mark.parametrize("below", ["text", None])
def test_what_does_not_fit_is_printed_as_blocks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, below: str | None
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = printed(capsys, below=below).splitlines()
    assert lines[:6] == [
        "version 1",
        "  active in  (default head)",
        "  since      2026-01-01 12:30Z",
        "  text       short",
        "",
        "version 12",
    ]
    assert " ".join(line.strip() for line in lines[6:]).split(maxsplit=1) == ["text", ROWS[1]["text"]]
    assert max(map(len, lines)) <= 40


def test_json_has_whole_values(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = json.loads(printed(capsys, as_json=True))
    assert first == {**ROWS[0], "since": "2026-01-01T12:30:15+00:00"}
    assert second == ROWS[1]


def test_nothing_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], as_json=False, empty="No model yet.")
    print_rows([], as_json=True, empty="No model yet.")
    assert capsys.readouterr().out == "No model yet.\n[]\n"


def commands(group: click.Group, path: str = "lifelong") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


@pytest.mark.parametrize("command", [pytest.param(made, id=path) for path, made in commands(cli)])
def test_the_help_of_every_command_fits_and_keeps_its_examples(command: click.Command) -> None:
    text = CliRunner().invoke(command, ["--help"], terminal_width=80, prog_name="lifelong x").output
    assert "\\b" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_texts_are_wrapped_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert wrap_text("one two three four five six seven", indent="    ", first="  - ").splitlines() == [
        "  - one two three four five",
        "    six seven",
    ]
    monkeypatch.delenv("COLUMNS")
    assert wrap_text("one two three four five six seven") == "one two three four five six seven"
