"""Cards and entries of the knowledge base from JSON files."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from lifelong.commands.connection import Connection
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard
from lifelong_core.entities.knowledge import KnowledgeDetails
from lifelong_core.operations.knowledge import PutKnowledge, ShowKnowledge
from lifelong_core.values.errors import InvalidInputError, NotFoundError

Document = TypeVar("Document", KnowledgeEntry, TaskCard)


def read_card(file: Path) -> TaskCard:
    """The task card in a file.

    Raises:
        InvalidInputError: the file cannot be read, or holds no card; the message names the file.
    """
    return _parse(TaskCard, _read(file), file)


def read_entry(file: Path) -> KnowledgeEntry | TaskCard:
    """The entry, or the task card alone, in a file.

    Raises:
        InvalidInputError: the file cannot be read, or holds neither; the message names the file.
    """
    content = _read(file)
    try:
        is_entry = "card" in json.loads(content)
    except (ValueError, TypeError, RecursionError):
        is_entry = False
    return _parse(KnowledgeEntry, content, file) if is_entry else _parse(TaskCard, content, file)


def enter(connection: Connection, new: KnowledgeEntry | TaskCard) -> KnowledgeDetails:
    """Enter a task, or replace its entry; with a card alone, the trainings of a known task stay."""
    if isinstance(new, KnowledgeEntry):
        task, entry = new.card.name, new.to_document()
    else:
        task, entry = new.name, {"card": new.to_document()}
        with suppress(NotFoundError):
            entry = {**(connection.send(ShowKnowledge(task=task)).entry or {}), **entry}
    return connection.send(PutKnowledge.read({"task": task, **entry}))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read ({error.strerror}).", field="FILE") from error


def _parse(kind: type[Document], content: bytes, file: Path) -> Document:
    try:
        return kind.from_json(content)
    except InvalidInputError as error:
        raise InvalidInputError(f"{file}: {error.message}", field=error.field, hint=error.hint) from error
