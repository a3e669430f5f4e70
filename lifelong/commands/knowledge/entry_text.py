"""Entries of the knowledge base as rows and texts."""

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lifelong.commands.common import format_count
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.values.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
    from lifelong_core.store.knowledge.records import KnowledgeRecord


def entry_row(record: "KnowledgeRecord") -> dict[str, Any]:
    """An entry as a row; a damaged one has no numbers."""
    try:
        card = record.entry.card
    except UnavailableError:
        card = None
    return {
        "task": record.task,
        "classes": None if card is None else card.classes,
        "samples": "damaged" if card is None else card.samples,
        "transfers": record.transfers,
        "fingerprints": len(record.fingerprints),
        "origin": record.origin,
    }


def entry_document(record: "KnowledgeRecord") -> dict[str, Any]:
    """An entry with all its values."""
    return {
        "task": record.task,
        "origin": record.origin,
        "digest": record.digest,
        "changed_at": record.changed_at.isoformat(),
        "changed_by": record.changed_by,
        "fingerprints": [
            {
                "digest": one.digest,
                "kind": one.kind,
                "extractor": one.extractor,
                "bins": one.bins,
                "samples": one.samples,
            }
            for one in record.fingerprints
        ],
        "entry": record.entry.to_document(),
    }


def print_entry(record: "KnowledgeRecord") -> None:
    """Print card, fingerprints and transfers of an entry."""
    entry = record.entry
    echo(record.task, bold=True)
    facts = {**_card_facts(entry.card), "licence": entry.licence, "contact": entry.contact}
    facts["origin"] = f"{record.origin}, changed {record.changed_at:%Y-%m-%d} by {record.changed_by}"
    for one in record.fingerprints:
        facts[f"fingerprint {one.digest[:12]}"] = _fingerprint_text(
            one.kind, one.samples, one.bins, one.extractor
        )
    label = max(len(name) for name in facts)
    for name, text in facts.items():
        if text:
            echo(wrap_text(text, first=f"  {name:{label}}  ", indent=" " * (label + 4)))
    echo()
    print_rows(list(_transfer_rows(entry)), as_json=False, empty="No transfer to this task was measured.")


def _card_facts(card: "TaskCard") -> dict[str, str | None]:
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


def _transfer_rows(entry: "KnowledgeEntry") -> "Iterable[dict[str, Any]]":
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
