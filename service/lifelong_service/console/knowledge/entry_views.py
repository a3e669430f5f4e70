"""Tasks of the knowledge base, as the pages show them."""

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from lifelong_service.console.interview.views import DAMAGED
from lifelong_service.console.knowledge.neighbour_views import SCENARIOS
from lifelong_service.console.knowledge.neighbours import task_path

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
    from lifelong_core.entities.develop.knowledge import FingerprintDisclosure, KnowledgeSummary

Facts = tuple[tuple[str, str], ...]
"""Names and values, in the order of display."""


@dataclass(frozen=True)
class Line:
    """One task in the list."""

    task: str
    path: str
    facts: Facts


@dataclass(frozen=True)
class Fingerprint:
    """A fingerprint, and what it discloses."""

    kind: str
    digest: str
    facts: Facts
    statements: tuple[str, ...]
    """what it discloses"""
    warning: str | None


@dataclass(frozen=True)
class Scenario:
    """Trainings of one scenario, or those without transfer, with one number of images."""

    name: str
    facts: Facts


def line_of(entry: "KnowledgeSummary") -> Line:
    """Return a task for the list; a damaged one stays in the list."""
    if entry.damaged is None:
        known = (
            entry.modality or "",
            f"{entry.classes:,}",
            f"{entry.samples:,}",
            f"{entry.trainings:,}",
            entry.licence or "not stated",
        )
    else:
        known = (DAMAGED, "", "", "", "")
    modality, classes, images, trainings, licence = known
    facts = (
        ("Modality", modality),
        ("Classes", classes),
        ("Images", images),
        ("Fingerprints", str(len(entry.fingerprints))),
        ("Trainings", trainings),
        ("Licence", licence),
        ("Origin", entry.origin),
    )
    return Line(entry.task, task_path(entry.task), facts)


def card_facts(card: "TaskCard") -> Facts:
    """Return the facts of a card that are known."""
    pixels = [f"{value:,}" for value in (card.smallest_pixels, card.largest_pixels) if value is not None]
    facts = (
        ("Data set", card.dataset),
        ("Keywords", ", ".join(card.keywords)),
        ("Modality", card.modality),
        ("Classes", str(card.classes)),
        ("Images", f"{card.samples:,}"),
        ("Imbalance", f"{card.imbalance:.3g} : 1"),
        ("Pixels per image", " to ".join(dict.fromkeys(pixels))),
        (
            "Intrinsic dimension",
            None if card.intrinsic_dimension is None else f"{card.intrinsic_dimension:g}",
        ),
    )
    return tuple((name, value) for name, value in facts if value)


def fingerprint_of(one: "FingerprintDisclosure") -> Fingerprint:
    """Return a fingerprint with what it discloses; of a damaged one, why it cannot be read."""
    facts = (
        ("Images", None if one.samples is None else f"{one.samples:,}"),
        ("Bins", None if one.bins is None else f"{one.bins:,} of each feature"),
        ("Extractor", None if one.extractor is None else one.extractor[:12]),
        ("Made", f"{one.created_at:%Y-%m-%d %H:%M} by {one.created_by}"),
    )
    known = tuple((name, value) for name, value in facts if value)
    return Fingerprint(one.kind, one.digest, known, tuple(one.statements), one.warning)


def scenarios_of(entry: "KnowledgeEntry") -> list[Scenario]:
    """Return the trainings of a task by scenario and number of images, those without transfer first."""
    names: dict[str | None, str] = {None: "Without transfer"}
    names |= {scenario: name for scenario, (name, _) in SCENARIOS.items()}
    groups: dict[tuple[str | None, int | None], list[Training]] = {}
    for training in entry.trainings:
        groups.setdefault((training.scenario, training.training_samples), []).append(training)
    measures = list(dict.fromkeys(name for one in entry.trainings for name in one.performance))
    order = list(names)
    return [
        Scenario(names[scenario], _training_facts(groups[scenario, images], images, measures))
        for scenario, images in sorted(groups, key=lambda key: (order.index(key[0]), key[1] or math.inf))
    ]


def _training_facts(trainings: "list[Training]", images: int | None, measures: list[str]) -> Facts:
    sources = {one.source for one in trainings} - {None}
    return (
        ("Images", "all" if images is None else f"{images:,}"),
        ("Trainings", str(len(trainings))),
        ("Sources", str(len(sources))),
        *((measure, _performance(trainings, measure)) for measure in measures),
    )


def _performance(trainings: "list[Training]", measure: str) -> str:
    """Return mean, smallest and largest value."""
    values = [value for one in trainings for value in one.performance.get(measure, ())]
    if not values:
        return "not measured"
    return f"{fmean(values):.3f} ({min(values):.3f} to {max(values):.3f})"
