"""Labelled images in memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lifelong_core.develop.features.sources.entry import Entry, Opened
from lifelong_core.develop.training.data.cases import Cases

SHARES = {"training": 0.6, "validation": 0.1, "calibration": 0.15, "test": 0.15}


class MemorySource:
    """Encoded images by their entries; `opened` counts how many were read."""

    def __init__(self, files: dict[Entry, bytes]) -> None:
        self.files = {replace(entry, size=len(data)): data for entry, data in files.items()}
        self.opened = 0

    def entries(self) -> Iterator[Entry | None]:
        yield from self.files

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        for entry in wanted:
            self.opened += 1
            yield entry, BytesIO(self.files[entry])


def png(pixels: NDArray[np.uint8] | NDArray[np.uint16]) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def drawn(seed: int, size: tuple[int, ...] = (20, 24, 3)) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


def source_of(count: int, *, classes: int = 2, **fields: Sequence[str | None]) -> MemorySource:
    """Different noise images, alternating between the classes, with these fields of the entries."""
    return MemorySource(
        {
            Entry(
                f"{number:03}.png",
                f"class {number % classes}",
                **{name: values[number] for name, values in fields.items()},
            ): png(drawn(number))
            for number in range(count)
        }
    )


def cases_of(labels: Sequence[int], groups: Sequence[str | None] | None = None) -> Cases:
    """Cases without images."""
    names = tuple(f"class {number}" for number in range(max(labels) + 1))
    return Cases(
        tuple(Entry(f"{number:04}.png", names[label]) for number, label in enumerate(labels)),
        names,
        np.array(labels, dtype=np.int64),
        tuple(groups) if groups is not None else (None,) * len(labels),
        None,
    )
