"""Entries of the knowledge base: read from JSON files, as rows and as texts."""

import json
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from lifelong.commands.common import format_count
from lifelong.commands.connection import Connection
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.entities.develop.knowledge import KnowledgeDetails, KnowledgeSummary
from lifelong_core.entities.entity import RESTORE
from lifelong_core.operations.develop.knowledge import PutKnowledge, ShowKnowledge
from lifelong_core.values.errors import InvalidInputError, NotFoundError, UnavailableError

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


def entry_row(entry: KnowledgeSummary) -> dict[str, Any]:
    """An entry as a row; a damaged one has no numbers."""
    return {
        "task": entry.task,
        "classes": entry.classes,
        "samples": entry.samples if entry.damaged is None else "damaged",
        "transfers": entry.transfers,
        "fingerprints": len(entry.fingerprints),
        "origin": entry.origin,
    }


def print_entry(shown: KnowledgeDetails) -> None:
    """Print card, fingerprints and transfers of an entry.

    Raises:
        UnavailableError: the entry is damaged.
    """
    if shown.damaged is not None:
        raise UnavailableError(shown.damaged, hint=RESTORE)
    entry = KnowledgeEntry.from_document(shown.entry)
    echo(shown.task, bold=True)
    facts = {**_card_facts(entry.card), "licence": entry.licence, "contact": entry.contact}
    facts["origin"] = f"{shown.origin}, changed {shown.changed_at:%Y-%m-%d} by {shown.changed_by}"
    for one in shown.fingerprints:
        facts[f"fingerprint {one.digest[:12]}"] = _fingerprint_text(
            one.kind, one.samples, one.bins, one.extractor
        )
    label = max(len(name) for name in facts)
    for name, text in facts.items():
        if text:
            echo(wrap_text(text, first=f"  {name:{label}}  ", indent=" " * (label + 4)))
    echo()
    print_rows(list(_transfer_rows(entry)), as_json=False, empty="No transfer to this task was measured.")


def _card_facts(card: TaskCard) -> dict[str, str | None]:
    pixels = [number for number in (card.smallest_pixels, card.largest_pixels) if number is not None]
    return {
        "data set": card.dataset,
        "keywords": ", ".join(card.keywords),
        "modality": card.modality,
        "classes": str(card.classes),
        "samples": f"{card.samples}, the largest class {card.imbalance:.3g} times the smallest",
        "image sizes": " to ".join(f"{number}" for number in sorted(set(pixels))) + " pixels"
        if pixels
        else None,
        "intrinsic dim.": None if card.intrinsic_dimension is None else f"{card.intrinsic_dimension:g}",
    }


def _fingerprint_text(kind: str, samples: int | None, bins: int | None, extractor: str | None) -> str:
    parts = [
        kind,
        format_count(samples, "image") if samples else "",
        format_count(bins, "bin") if bins else "",
        f"extractor {extractor[:12]}" if extractor else "",
    ]
    return ", ".join(part for part in parts if part)


def _transfer_rows(entry: KnowledgeEntry) -> Iterable[dict[str, Any]]:
    """For each scenario, number of images and measure: the baseline, and the source with the largest mean."""
    baselines = {
        (training.training_samples, measure): fmean(values)
        for training in entry.trainings
        if training.source is None
        for measure, values in training.performance.items()
    }
    groups: dict[tuple[Any, ...], list[tuple[float, Training]]] = defaultdict(list)
    for training in entry.trainings:
        if training.source is not None:
            for measure, values in training.performance.items():
                key = training.scenario, training.training_samples, measure
                groups[key].append((fmean(values), training))
    for (scenario, samples, measure), found in groups.items():
        best, training = max(found, key=lambda pair: pair[0])
        baseline = baselines.get((samples, measure))
        yield {
            "scenario": scenario,
            "images": "all" if samples is None else samples,
            "measure": measure,
            "baseline": None if baseline is None else f"{baseline:.3f}",
            "sources": len(found),
            "best": f"{best:.3f} with {training.source}",
        }
