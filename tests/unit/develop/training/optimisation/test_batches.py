"""Which cases come in which batch."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.develop.training.optimisation.batches import (
    TrainingBatches,
    ahead,
    class_mix,
    draw_epoch,
    generator_of,
)
from lifelong_core.develop.training.recipe import Optimisation


class Numbered:
    """Images that show their own position, so that a batch tells what is in it."""

    def __init__(self, labels: list[int], *, training: int | None = None) -> None:
        self.labels = np.array(labels)
        count = len(labels) if training is None else training
        self.splits: Mapping[str, Any] = {"training": np.arange(count)}
        self.class_names = tuple(str(label) for label in sorted(set(labels)))

    def pixels(self, indices: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(indices.astype(np.uint8)).view(-1, 1, 1, 1)


def keep(images: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return images


def jitter(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return images + torch.randint(100, images.shape, generator=generator).to(torch.uint8)


def batches(images: Any, mix: Any = None, **changes: Any) -> TrainingBatches:
    return TrainingBatches(
        images, mix, **{"transform": keep, "batch_size": 8, "seed": (0, "training"), **changes}
    )


@given(st.integers(2, 90), st.integers(2, 20))
def test_without_a_mix_every_case_comes_once_in_an_epoch(cases: int, size: int) -> None:
    stream = batches(Numbered([0, 1] * cases, training=cases), batch_size=size)
    parts = [batch.images.flatten().tolist() for batch in stream.prepared(1, threads=1)]
    assert sorted(itertools.chain(*parts)) == list(range(cases))
    assert len(parts) == stream.per_epoch
    # A batch of one image would break batch normalisation.
    assert min(map(len, parts)) >= 2
    assert max(map(len, parts)) <= max(size, 3)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_balanced_batches_have_the_classes_equally_often() -> None:
    labels = np.array([0] * 900 + [1] * 90 + [2] * 10)
    drawn = draw_epoch(labels, np.full(3, 1 / 3), cases=30_000, generator=generator_of(1))
    np.testing.assert_allclose(np.bincount(labels[drawn]) / 30_000, 1 / 3, atol=0.01)


def test_a_prevalence_is_drawn_whatever_the_data_have() -> None:
    labels = np.array([0] * 50 + [1] * 50)
    drawn = draw_epoch(labels, np.array([0.9, 0.1]), cases=20_000, generator=generator_of(1))
    np.testing.assert_allclose(np.bincount(labels[drawn]) / 20_000, [0.9, 0.1], atol=0.01)


def test_the_mix_of_each_sampling() -> None:
    counts = np.array([30, 10])
    assert class_mix(Optimisation(), counts).tolist() == [0.5, 0.5]
    assert class_mix(Optimisation(sampling="natural"), counts).tolist() == [0.75, 0.25]
    wanted = Optimisation(sampling="prevalence", target_prevalence=(0.1, 0.9))
    assert class_mix(wanted, counts).tolist() == [0.1, 0.9]


def test_batches_do_not_depend_on_the_number_of_threads() -> None:
    stream = batches(Numbered([0, 1] * 50), np.array([0.5, 0.5]), transform=jitter)
    alone, together = ([batch.images for batch in stream.prepared(3, threads=threads)] for threads in (1, 5))
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))
    other_epoch = next(iter(stream.prepared(4, threads=1))).images
    assert not torch.equal(alone[0], other_epoch)


def test_half_of_a_co_trained_batch_is_of_the_source_task() -> None:
    target, source = Numbered([0, 1] * 20), Numbered([0, 1, 2] * 40)
    stream = batches(target, np.full(2, 0.5), source=source, source_mix=np.full(3, 1 / 3))
    parts = list(stream.prepared(1, threads=2))
    assert sum(len(batch.labels) for batch in parts) == 40
    for batch in parts:
        assert len(batch.labels) == len(batch.source_labels) == 4
        positions = batch.images.flatten().tolist()
        assert target.labels[positions[:4]].tolist() == batch.labels.tolist()
        assert source.labels[positions[4:]].tolist() == batch.source_labels.tolist()


def test_an_error_in_a_thread_ends_the_epoch() -> None:
    def make(number: int) -> int:
        if number == 3:
            raise OSError("the disk is gone")
        return number

    found: list[int] = []
    with pytest.raises(OSError, match="the disk is gone"):
        found.extend(ahead(make, 100, 2))
    assert found == [0, 1, 2]
    assert list(ahead(lambda number: number, 7, 3)) == list(range(7))
