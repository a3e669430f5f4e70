"""Extraction holds few images at once, whatever their number, and leaves the process as it was."""

import io
import tracemalloc
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from PIL import Image

from lifelong_core.develop.features.backbone import Backbone
from lifelong_core.develop.features.extraction import Batch, Extraction, steady_process
from lifelong_core.develop.features.reference import thesis_preprocessing
from lifelong_core.develop.features.sources.entry import Entry, Opened
from lifelong_core.develop.features.sources.opening import open_images
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.runtime.cores import usable_cores
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from tests.unit.develop.features.drawn import ARCHITECTURE, EDGE, draw_images


class CountingSource:
    """Gives the same image under many names, and counts the files that are open."""

    def __init__(self, count: int) -> None:
        content = io.BytesIO()
        Image.new("L", (40, 40), 100).save(content, "PNG")
        self._content = content.getvalue()
        self._count = count
        self.open = self.most_open = 0

    def entries(self) -> Iterator[Entry | None]:
        return (Entry(f"{index}.png") for index in range(self._count))

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        for entry in wanted:
            self.open += 1
            self.most_open = max(self.open, self.most_open)
            yield entry, self._file()

    def _file(self) -> BinaryIO:
        source = self

        class Counted(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    source.open -= 1
                super().close()

        return Counted(self._content)


def extract(source: CountingSource, backbone: Backbone, extractor: ExtractorReference) -> int:
    """The number of extracted images."""
    extraction = Extraction(source, backbone, extractor.document.preprocessing, batch_size=8)
    sizes: list[int] = []
    with steady_process():
        extraction.run(
            [entry for entry in source.entries() if entry], lambda batch: sizes.append(len(batch.features))
        )
    return sum(sizes)


def test_few_files_are_open_at_once(backbone: Backbone, extractor: ExtractorReference) -> None:
    source = CountingSource(300)
    assert extract(source, backbone, extractor) == 300
    assert source.open == 0
    assert source.most_open <= 2 * min(8, usable_cores())


def test_memory_does_not_grow_with_the_number_of_images(
    backbone: Backbone, extractor: ExtractorReference
) -> None:
    def peak(count: int) -> int:
        source = CountingSource(count)
        tracemalloc.start()
        extract(source, backbone, extractor)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(50)
    pixels = 3 * 32 * 32 * 4  # bytes of one input
    assert peak(400) - peak(100) < 50 * pixels


def test_an_extractor_keeps_the_preprocessing_that_it_was_given(extractor: ExtractorReference) -> None:
    assert extractor.document.preprocessing == thesis_preprocessing(ARCHITECTURE, edge=EDGE)


def test_filters_of_warnings_are_restored(backbone: Backbone, extractor: ExtractorReference) -> None:
    before = list(warnings.filters)
    extract(CountingSource(100), backbone, extractor)
    assert list(warnings.filters) == before


def test_images_come_in_the_order_of_their_names(
    tmp_path: Path, backbone: Backbone, extractor: ExtractorReference
) -> None:
    draw_images(tmp_path, 12)
    source = open_images(tmp_path)
    chosen = [entry for entry in source.entries() if entry is not None]
    names: list[str] = []

    def note(batch: Batch) -> None:
        names.extend(entry.name for entry in batch.entries)

    with steady_process():
        Extraction(source, backbone, extractor.document.preprocessing, batch_size=5).run(chosen[::-1], note)
    assert names == sorted(entry.name for entry in chosen)


def test_features_that_are_not_finite_are_refused(
    weights_file: Path, extractor: ExtractorReference, monkeypatch: pytest.MonkeyPatch, backbone: Backbone
) -> None:
    monkeypatch.setattr(backbone, "extract", lambda images: np.full((len(images), 96), np.nan, np.float32))
    with pytest.raises(InvalidInputError, match="not finite"):
        extract(CountingSource(3), backbone, extractor)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "preprocessing"),
        ({"resize": {"mode": "shortest_edge", "height": 8, "width": 8}}, "preprocessing"),
        ({"resize": {"height": 8, "width": 8}, "layout": "NHWC"}, "preprocessing"),
    ],
)
def test_preprocessing_must_give_one_size(
    backbone: Backbone, document: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInputError) as raised:
        Extraction(CountingSource(1), backbone, Preprocessing.model_validate(document))
    assert raised.value.field == field


@pytest.mark.parametrize(("name", "value"), [("batch_size", 0), ("most_unreadable", 1.0)])
def test_wrong_arguments_are_named(
    backbone: Backbone, extractor: ExtractorReference, name: str, value: float
) -> None:
    with pytest.raises(InvalidInputError) as raised:
        Extraction(CountingSource(1), backbone, extractor.document.preprocessing, **{name: value})  # type: ignore[arg-type]
    assert raised.value.field == name
