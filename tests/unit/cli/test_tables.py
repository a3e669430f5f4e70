"""Tables in terminals of any width, in pipes and as JSON."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong.commands.tables import print_rows, wrap_text

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
