"""Texts of others are no commands to the terminal, wherever the command line prints them."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.table import Table

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong.commands.tables import print_rows
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
    for field in ("dataset", "modality", "keywords", "licence"):
        installed("knowledge", "list")
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
