"""Tasks with their entries and fingerprints, as one immutable value."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Self

from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.assembly import assemble_outcomes, make_entries
from lifelong_core.develop.knowledge.entry import (
    KnowledgeEntry,
    TaskCard,
    Training,
    TransferOutcomes,
    dataset_of,
)
from lifelong_core.develop.knowledge.knowledge_index import KnowledgeIndex
from lifelong_core.develop.knowledge.stored_fingerprints import StoredFingerprints
from lifelong_core.values.errors import InvalidInputError, NotFoundError


@dataclass(frozen=True)
class KnowledgeBase:
    """Entries by task name, and the fingerprints of these tasks; changes give a new value.

    Raises:
        InvalidInputError: a key differs from the name in the card, or a fingerprint is of no task of the base.
    """

    entries: Mapping[str, KnowledgeEntry] = field(default_factory=dict[str, KnowledgeEntry])
    fingerprints: Mapping[str, tuple[Fingerprint, ...]] = field(
        default_factory=dict[str, tuple[Fingerprint, ...]]
    )
    """by task; tasks without fingerprints may be left out"""
    index: KnowledgeIndex | None = field(default=None, compare=False)
    """of these fingerprints, for fast queries; a change gives a value without one"""

    def __post_init__(self) -> None:
        for name, entry in self.entries.items():
            if name != entry.card.name:
                raise InvalidInputError(f"the entry {name!r} is of {entry.card.name!r}.", field="entries")
        for name in self.fingerprints:
            if name not in self.entries:
                raise InvalidInputError(f"no entry is of the task {name!r}.", field="fingerprints")
        object.__setattr__(self, "entries", MappingProxyType(dict(self.entries)))
        if not isinstance(self.fingerprints, StoredFingerprints):
            kept = {name: tuple(held) for name, held in self.fingerprints.items() if held}
            object.__setattr__(self, "fingerprints", MappingProxyType(kept))

    @classmethod
    def from_entries(cls, entries: Iterable[KnowledgeEntry]) -> Self:
        """A knowledge base without fingerprints.

        Raises:
            InvalidInputError: two entries are of the same task.
        """
        by_name: dict[str, KnowledgeEntry] = {}
        for entry in entries:
            if entry.card.name in by_name:
                raise InvalidInputError(f"two entries are of {entry.card.name!r}.", field="entries")
            by_name[entry.card.name] = entry
        return cls(by_name)

    @classmethod
    def from_outcomes(
        cls, outcomes: TransferOutcomes, training_samples: Mapping[str, int] | None = None
    ) -> Self:
        """One entry for each task: the baseline and the measured transfers to it, and distances to it.

        Args:
            outcomes: measured transfers; `outcomes()` of the result is equal to it.
            training_samples: by target, images that it was trained with; all, where it is left out.
        """
        return cls.from_entries(make_entries(outcomes, training_samples or {}))

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, task: object) -> bool:
        return task in self.entries

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in the order in which they were added."""
        return tuple(self.entries)

    def entry(self, task: str) -> KnowledgeEntry:
        """The entry of this task.

        Raises:
            NotFoundError: the knowledge base does not hold this task.
        """
        if task not in self.entries:
            near = difflib.get_close_matches(task, self.entries, n=3)
            raise NotFoundError(
                f"the knowledge base holds no task {task[:80]!r}.",
                field="task",
                hint=f"Did you mean {', '.join(near)}?" if near else "List its tasks.",
            )
        return self.entries[task]

    def add(self, entry: KnowledgeEntry, fingerprints: Iterable[Fingerprint] = ()) -> Self:
        """The knowledge base with this entry, which replaces an entry and fingerprints of the same task."""
        name = entry.card.name
        return type(self)({**self.entries, name: entry}, {**self.fingerprints, name: tuple(fingerprints)})

    def remove(self, task: str) -> Self:
        """The knowledge base without this task; trainings of other tasks that name it as the source stay.

        Raises:
            NotFoundError: the knowledge base does not hold this task.
        """
        self.entry(task)
        return type(self)(
            {name: entry for name, entry in self.entries.items() if name != task},
            {name: held for name, held in self.fingerprints.items() if name != task},
        )

    def with_index(self, folder: Path) -> Self:
        """This value with an index of its histogram fingerprints, whose files are kept in the folder.

        Raises:
            OSError: the folder cannot be written.
        """
        return type(self)(self.entries, self.fingerprints, KnowledgeIndex.open(folder, self.fingerprints))

    def trainings(
        self, *, target: str | None = None, source: str | None = None, scenario: str | None = None
    ) -> tuple[tuple[str, Training], ...]:
        """Target and training of each training that fits; None: any."""
        return tuple(
            (name, training)
            for name, entry in self.entries.items()
            if target in (None, name)
            for training in entry.trainings
            if source in (None, training.source) and scenario in (None, training.scenario)
        )

    def possible_sources(self, target: str | TaskCard) -> tuple[str, ...]:
        """Tasks that something can be transferred from to this target.

        Tasks of the same data set are left out, since they may share images, unless a transfer between
        the two was measured.
        """
        card = self.entry(target).card if isinstance(target, str) else target
        known = self.entries.get(card.name)
        measured = [training.source for training in known.trainings] if known else []
        return tuple(
            name
            for name, entry in self.entries.items()
            if name != card.name and (name in measured or dataset_of(entry.card) != dataset_of(card))
        )

    def outcomes(self) -> TransferOutcomes:
        """Measured transfers between tasks as arrays, assembled from the trainings of the entries.

        A task takes part if something was measured or published of it: a training, a transfer from it, or a distance.
        The arrays grow with the square of the number of tasks, and a large knowledge base holds many cards only.

        Where a target was trained with several numbers of images, those trainings count whose number has the
        most transfers (of equal ones: the most images), so that transfers and baseline are comparable. Trainings of
        the same source and scenario give further repetitions. Transfers from tasks that are not in the
        knowledge base are left out, and so are measures of which lower values are better, such as BS. The arrays are
        assembled once; change a copy of them.
        """
        return self._outcomes

    @cached_property
    def _outcomes(self) -> TransferOutcomes:
        named = {
            source
            for entry in self.entries.values()
            for sources in (
                (training.source for training in entry.trainings),
                *entry.distances.values(),
            )
            for source in sources
        }
        return assemble_outcomes(
            tuple(
                entry
                for name, entry in self.entries.items()
                if entry.trainings or entry.distances or name in named
            )
        )
