"""Which cases come in which batch of an epoch, and their preparation in threads."""
# pyright: reportUnknownMemberType=false

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from lifelong_core.develop.training.augmentation.transform import Transform
from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.recipe import Optimisation
from lifelong_core.values.arrays import Floats

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Batch:
    """Augmented images with their classes.

    Attributes:
        images: uint8 (n, C, H, W); those of the target task first.
        labels: (t,), classes of the first t images.
        source_labels: (n - t,), classes of the source task, in co-training.
    """

    images: torch.Tensor
    labels: torch.Tensor
    source_labels: torch.Tensor


def generator_of(*parts: int | str) -> torch.Generator:
    """A generator that these parts seed, such as seed, phase, epoch and batch.

    Nothing is drawn from a common stream, so that a resumed training draws what an uninterrupted one draws.
    """
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


def class_mix(optimisation: Optimisation, counts: NDArray[np.int64]) -> Floats:
    """Shares of the classes in the batches, shape (C,), from the numbers of cases of each class."""
    match optimisation.sampling:
        case "balanced":
            return np.full(len(counts), 1 / len(counts))
        case "natural":
            return counts / counts.sum()
        case "prevalence":
            return np.asarray(optimisation.target_prevalence, dtype=np.float64)


def draw_epoch(
    labels: NDArray[np.int64], mix: Floats | None, *, cases: int, generator: torch.Generator
) -> NDArray[np.int64]:
    """Positions of the cases of one epoch, in order.

    Args:
        labels: (N,), of the training cases.
        mix: shares of the classes, (C,): drawn with replacement; None: every case once, shuffled, again and again.
        cases: how many.
        generator: draws them.
    """
    if mix is None:
        rounds = math.ceil(cases / len(labels))
        orders = [torch.randperm(len(labels), generator=generator) for _ in range(rounds)]
        return torch.cat(orders)[:cases].numpy()
    weights = (mix / np.bincount(labels, minlength=len(mix)))[labels]
    drawn = torch.multinomial(torch.from_numpy(weights), cases, replacement=True, generator=generator)
    return drawn.numpy()


class TrainingBatches:
    """The batches of a phase.

    Args:
        images: of the task.
        mix: shares of the classes; None: every case once in each epoch.
        transform: random crop and augmentation.
        batch_size: images of a batch; in co-training, half of them are of the source task.
        source: images of the source task in co-training; None: no co-training.
        source_mix: shares of its classes.
        seed: of everything random.
    """

    def __init__(
        self,
        images: PreparedImages,
        mix: Floats | None,
        *,
        transform: Transform,
        batch_size: int,
        source: PreparedImages | None = None,
        source_mix: Floats | None = None,
        seed: tuple[int | str, ...],
    ) -> None:
        self._streams = [(images, mix)] if source is None else [(images, mix), (source, source_mix)]
        self._transform = transform
        self._seed = seed
        training = len(images.splits["training"])
        per_task = max(1, batch_size // len(self._streams))
        # Batch normalisation needs two images.
        self.per_epoch = max(1, min(math.ceil(training / per_task), training // 2))
        """batches, of equal sizes but for one image"""

    def prepared(self, epoch: int, *, threads: int) -> Iterator[Batch]:
        """The batches of an epoch, prepared ahead in threads; the same whatever their number."""
        drawn = [self._draw(stream, number, epoch) for number, stream in enumerate(self._streams)]
        cuts = np.array_split(np.arange(len(drawn[0])), self.per_epoch)
        return ahead(lambda number: self._batch(drawn, cuts[number], epoch, number), len(cuts), threads)

    def _draw(
        self, stream: tuple[PreparedImages, Floats | None], number: int, epoch: int
    ) -> NDArray[np.int64]:
        images, mix = stream
        training = images.splits["training"]
        cases = len(self._streams[0][0].splits["training"])
        generator = generator_of(*self._seed, epoch, f"draw {number}")
        return training[draw_epoch(images.labels[training], mix, cases=cases, generator=generator)]

    def _batch(
        self, drawn: Sequence[NDArray[np.int64]], cut: NDArray[np.int64], epoch: int, number: int
    ) -> Batch:
        generator = generator_of(*self._seed, epoch, number)
        chosen = [positions[cut] for positions in drawn]
        stacked = torch.cat(
            [images.pixels(positions) for (images, _), positions in zip(self._streams, chosen, strict=True)]
        )
        labels = [
            torch.from_numpy(images.labels[positions])
            for (images, _), positions in zip(self._streams, chosen, strict=True)
        ]
        source_labels = labels[1] if len(labels) > 1 else torch.zeros(0, dtype=torch.int64)
        return Batch(self._transform(stacked, generator), labels[0], source_labels)


def ahead(make: Callable[[int], T], count: int, threads: int) -> Iterator[T]:
    """`make(0)`, ..., `make(count - 1)` in order, made in threads a few steps before they are asked for."""
    with ThreadPoolExecutor(threads, thread_name_prefix="batches") as pool:
        running: deque[Future[T]] = deque()
        try:
            for number in range(count):
                running.append(pool.submit(make, number))
                if len(running) > 2 * threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
