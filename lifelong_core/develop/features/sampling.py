"""A seeded random sample of images whose number is not known ahead."""

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lifelong_core.develop.features.sources.entry import Entry
from lifelong_core.values.errors import InvalidInputError

MOST_CLASSES = 100_000

_TOLD_EVERY = 1000


@dataclass(frozen=True)
class Survey:
    """All images of a source, counted, and a sample of them.

    Attributes:
        images: number of images.
        passed_over: number of files that are no images.
        classes: images of each class; those without a class are missing.
        chosen: the sample, by ascending key: the first k of it are a sample of k images.
    """

    images: int
    passed_over: int
    classes: dict[str, int]
    chosen: tuple[Entry, ...]

    @property
    def is_labelled(self) -> bool:
        """Whether every image has a class."""
        return self.images > 0 and sum(self.classes.values()) == self.images


def sample_entries(
    entries: Iterable[Entry | None],
    *,
    samples: int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Survey:
    """Count the images of a source and draw a simple random sample without replacement.

    Each image gets a key, a hash of seed and name; the images with the smallest keys are taken (bottom-k sampling,
    Cohen and Kaplan 2007). The sample depends on the names only: not on their order, nor on where the folder lies.
    Memory grows with the size of the sample, not with the number of images.

    Args:
        entries: images; None stands for a file that is no image.
        samples: how many; all if there are fewer.
        seed: of the keys.
        progress: called now and then with the number of images so far.

    Raises:
        InvalidInputError: `samples` below 1, or too many classes.
    """
    if samples < 1:
        raise InvalidInputError(f"expected at least 1, got {samples}.", field="samples")
    # A heap with the largest key on top; equal keys (equal names) are told apart by their position in the list.
    kept: list[tuple[int, int, Entry]] = []
    classes: Counter[str] = Counter()
    images = passed_over = 0
    for entry in entries:
        if entry is None:
            passed_over += 1
            continue
        item = (-_key(entry, seed), -images, entry)
        if len(kept) < samples:
            heapq.heappush(kept, item)
        elif item > kept[0]:
            heapq.heapreplace(kept, item)
        images += 1
        if entry.label is not None:
            classes[entry.label] += 1
            _check_classes(len(classes))
        if progress is not None and images % _TOLD_EVERY == 0:
            progress(images)
    chosen = tuple(entry for _, _, entry in sorted(kept, reverse=True))
    return Survey(images, passed_over, dict(sorted(classes.items())), chosen)


def _key(entry: Entry, seed: int) -> int:
    digest = hashlib.blake2b(f"{seed}\n{entry.name}".encode("utf-8", "surrogateescape"), digest_size=8)
    return int.from_bytes(digest.digest())


def _check_classes(count: int) -> None:
    if count > MOST_CLASSES:
        raise InvalidInputError(
            f"the images have more than {MOST_CLASSES} classes.",
            field="images",
            hint="If folders are no classes but patients or studies, say that the images are unlabelled.",
        )
