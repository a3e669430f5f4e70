"""The files of a recording, and the clients that write into it: HTTP and the command line."""

import json
import re
import shlex
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import httpx
from click.testing import CliRunner

from tests.behaviour.normalise import normalise

HEADERS_LEFT_OUT = {"date", "content-length", "server", "connection"}
ANY = 0
LONGEST_REQUEST = 300
"""Characters of a request's body that an item repeats."""


class Recording:
    """Texts by item, written as files when it is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.literal: dict[str, str] = {}
        """Placeholders by text: ports, folders, names of the host."""
        self._items: dict[str, list[str]] = defaultdict(list)

    def add(self, item: str, title: str, text: str) -> None:
        """Append one observation to an item."""
        self._items[item].append(f"### {title}\n{text.rstrip()}\n")

    def has(self, item: str) -> bool:
        """Whether something was recorded for an item."""
        return item in self._items

    def write(self) -> None:
        """Write one normalised file for each item."""
        for item, texts in self._items.items():
            file = self.folder / f"{item}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(normalise("\n".join(texts), self.literal, item), encoding="utf-8")


class Api:
    """The service over HTTP; every answer is recorded under the template of its route.

    Args:
        recording: gets the answers.
        url: of the service.
        token: of requests that name no other one.
    """

    def __init__(self, recording: Recording, url: str, token: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=60)
        self.token = token
        self.secrets: dict[str, str] = {}
        self.recording = recording
        self.document: dict[str, Any] = self.client.get("/openapi.json").json()
        self.operations = [
            (method.upper(), path) for path, methods in self.document["paths"].items() for method in methods
        ]

    def __call__(
        self,
        method: str,
        path: str,
        *,
        token: str | None = "",
        status: int | None = None,
        folder: str = "http",
        **arguments: Any,
    ) -> Any:
        """Send a request and record the answer.

        Args:
            method: HTTP method.
            path: with its query.
            token: "" for that of the client, None for none.
            status: expected; None: below 400; ANY: not checked.
            folder: of the item.
            arguments: of httpx.

        Returns:
            the JSON answer, or its text.
        """
        path = path if path.startswith("/") else f"/v1/admin/{path}"
        headers = dict(arguments.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.token}"
        answer = self.client.request(method, path, headers=headers, **arguments)
        sent = arguments.get("json", arguments.get("content", arguments.get("data", "")))
        title = f"{method} {path} {shortened(sent)}"
        self.recording.add(f"{folder}/{self.item(method, path)}", title, text_of(answer))
        expected = status == ANY or (
            answer.status_code < 400 if status is None else answer.status_code == status
        )
        if not expected:
            click.echo(f"unexpected: {title}: {answer.status_code} {answer.text[:300]}")
        return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text

    def get(self, path: str, status: int | None = None) -> Any:
        """Read a route; a path without a slash in front is one of /v1/admin."""
        return self("GET", path, status=status)

    def post(self, path: str, status: int | None = None, /, **body: Any) -> Any:
        """Send a JSON document, or none."""
        return self("POST", path, status=status, **({"json": body} if body else {}))

    def send(self, path: str, content: bytes, kind: str, status: int | None = None) -> Any:
        """Send a file of a content type; `application/` is added where it has no slash."""
        headers = {"Content-Type": kind if "/" in kind else f"application/{kind}"}
        return self("POST", path, content=content, headers=headers, status=status)

    def peek(self, path: str) -> Any:
        """The JSON answer of a route of /v1/admin, without recording it."""
        return self.client.get(f"/v1/admin/{path}", headers={"Authorization": f"Bearer {self.token}"}).json()

    def item(self, method: str, path: str) -> str:
        """The name of the item of a route."""
        path = path.partition("?")[0]
        for template in sorted((p for m, p in self.operations if m == method), key=lambda p: p.count("{")):
            if re.fullmatch(re.sub(r"\{[^/]*\}", "[^/]+", template), path):
                path = template
                break
        return name_of(f"{method} {re.sub(r'{[^/]*}', '{}', path)}")  # whatever a parameter is called


class CommandLine:
    """`lifelong` in this process; every invocation is recorded under the name of its command."""

    def __init__(self, recording: Recording) -> None:
        scripts = tomllib.loads(Path("pyproject.toml").read_text())["project"]["scripts"]
        self._group: click.Group = import_module(scripts["lifelong"].partition(":")[0]).cli
        self.recording = recording

    def __call__(self, line: str, *more: str, folder: str = "commands", given: str | None = None) -> str:
        """Run a command line and return what it printed."""
        arguments = [*shlex.split(line), *more]
        result = CliRunner().invoke(self._group, arguments, input=given, prog_name="lifelong")
        is_json = result.stdout.startswith(("{", "["))
        text = f"exit {result.exit_code}\n{body_of(result.stdout_bytes, 'json' if is_json else '')}"
        if result.stderr:
            text += f"\n--- stderr\n{result.stderr}"
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            text += f"\n--- {type(result.exception).__name__}: {result.exception}"
        self.recording.add(f"{folder}/{self.name(arguments)}", shlex.join(arguments), text)
        return result.stdout

    def both(self, line: str) -> Any:
        """Run a command as text and with `--json`; returns the document."""
        self(line)
        text = self(f"{line} --json")
        return json.loads(text) if text.strip().startswith(("{", "[")) else text

    def name(self, arguments: list[str]) -> str:
        """The name of the command in a command line, with dots."""
        command: click.Command = self._group
        names: list[str] = []
        for argument in arguments:
            found = below(command).get(argument)
            if found is None:
                break
            command = found
            names.append(argument)
        return ".".join(names) or "lifelong"

    def commands(self) -> list[str]:
        """The names of the commands that are no groups, with dots."""
        every = [".".join(names) for names in self.all()]
        return [name for name in every[1:] if not any(other.startswith(f"{name}.") for other in every)]

    def all(self) -> list[list[str]]:
        """The names of all commands and groups."""

        def walk(command: click.Command, path: list[str]) -> list[list[str]]:
            return [
                path,
                *(found for name, one in below(command).items() for found in walk(one, [*path, name])),
            ]

        return walk(self._group, [])


def below(command: click.Command) -> dict[str, click.Command]:
    """The commands of a group by name, sorted; none of another command."""
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    found = {name: command.get_command(context, name) for name in sorted(command.list_commands(context))}
    return {name: one for name, one in found.items() if one is not None}


def text_of(answer: httpx.Response) -> str:
    """Status, headers and body of an answer."""
    kept = {name: value for name, value in sorted(answer.headers.items()) if name not in HEADERS_LEFT_OUT}
    head = "".join(f"{name}: {value}\n" for name, value in kept.items())
    return f"{answer.status_code}\n{head}\n{body_of(answer.content, answer.headers.get('content-type', ''))}"


def body_of(content: bytes, kind: str) -> str:
    """A body as text: JSON with line breaks, binary content as its first bytes."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"binary, begins with {content[:4]!r}"
    if "json" in kind:
        with suppress(ValueError):  # lines of JSON are shown as they are
            return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    return text


def shortened(sent: Any) -> str:
    """The body of a request, for the title of an observation."""
    if isinstance(sent, bytes):
        return f"({len(sent)} bytes)"
    text = json.dumps(sent) if isinstance(sent, Mapping | list) else str(sent)
    return text if len(text) <= LONGEST_REQUEST else f"{text[:LONGEST_REQUEST]}..."


def name_of(route: str) -> str:
    """A file name for a route or page."""
    return re.sub(r"[^A-Za-z0-9{}.=-]+", "_", route).strip("_")
