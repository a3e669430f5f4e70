"""Cards and entries of the knowledge base from JSON files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lifelong.commands.common import actor
from lifelong_core.values.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard
    from lifelong_core.store import Store
    from lifelong_core.store.knowledge.records import KnowledgeRecord

Document = TypeVar("Document", "KnowledgeEntry", "TaskCard")


def read_card(file: Path) -> "TaskCard":
    """The task card in a file.

    Raises:
        InvalidInputError: the file cannot be read, or holds no card; the message names the file.
    """
    from lifelong_core.develop.knowledge.entry import TaskCard

    return _parse(TaskCard, _read(file), file)


def read_entry(file: Path) -> "KnowledgeEntry | TaskCard":
    """The entry, or the task card alone, in a file.

    Raises:
        InvalidInputError: the file cannot be read, or holds neither; the message names the file.
    """
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard

    content = _read(file)
    try:
        is_entry = "card" in json.loads(content)
    except (ValueError, TypeError, RecursionError):
        is_entry = False
    return _parse(KnowledgeEntry, content, file) if is_entry else _parse(TaskCard, content, file)


def enter_card(store: "Store", card: "TaskCard") -> "KnowledgeRecord":
    """Enter a task, or change the card of a known one; its trainings stay."""
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry

    try:
        entry = store.knowledge.get(card.name).entry.model_copy(update={"card": card})
    except NotFoundError:
        entry = KnowledgeEntry(card=card)
    return store.knowledge.put(entry, actor=actor())


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
