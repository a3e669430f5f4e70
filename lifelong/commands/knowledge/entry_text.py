"""Entries of the knowledge base as rows and texts."""

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from lifelong.commands.common import format_count
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.entities.entity import RESTORE
from lifelong_core.entities.knowledge import KnowledgeDetails, KnowledgeSummary
from lifelong_core.values.errors import UnavailableError


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
