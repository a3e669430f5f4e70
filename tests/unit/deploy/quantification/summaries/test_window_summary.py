"""Summaries of windows: bounded, mergeable, and as good as the logits."""

import functools
import operator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import QUANTIFIERS, LabeledLogits, quantifier
from lifelong_core.deploy.quantification.codebook import MOST_CELLS, Codebook
from lifelong_core.deploy.quantification.group_sketch import GroupSketch
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import read_npz, write_npz
from tests.unit.deploy.conftest import GaussianPopulation

every_method = pytest.mark.parametrize("method", QUANTIFIERS)
EXACT = ("CC", "PCC", "ACC", "PACC", "BBSE", "HDy", "KDEyCS")


@functools.cache
def fitted(method, classes=3, separation=2.0):
    """Fitted once for all tests, with its codebook."""
    rng = np.random.default_rng(7)
    return quantifier(method).fit(GaussianPopulation(classes, separation).draw([80] * classes, rng))


def draw(size, seed=0, classes=3, prevalence=None):
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.ones(classes)) if prevalence is None else prevalence
    return GaussianPopulation(classes, 2.0).window(prevalence, size, rng)


def assert_same(one, other):
    assert one.quantifier_digest == other.quantifier_digest
    assert one.cells.tolist() == other.cells.tolist()
    assert one.counts.tolist() == other.counts.tolist()
    for name in ("feature_sums", "logit_sums", "moments"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-9)
    assert one.groups == other.groups


@every_method
def test_the_estimate_from_buckets_is_that_of_the_window(method):
    quantify, window = fitted(method), draw(3000)
    buckets = [quantify.summarize(part) for part in np.array_split(window, 7)]
    exact, summarized = quantify.estimate(window), quantify.estimate(sum(buckets))
    width = exact.high - exact.low
    # KDEyCS merges near-duplicates batch by batch; a tenth is what we promise.
    bound = {"KDEyCS": 1e-3}.get(method, 1e-9) if method in EXACT else 0.1
    assert (np.abs(exact.prevalence - summarized.prevalence) <= bound * width).all()
    assert summarized.high - summarized.low == pytest.approx(width, rel=0.02)
    assert (summarized.n, summarized.effective_n, summarized.method) == (3000, 3000, method)
    assert quantify.prevalence(sum(buckets)).tolist() == summarized.prevalence.tolist()


@pytest.mark.parametrize(
    ("method", "task"),
    [
        ("MLLS", "lapgyn4_surgical_actions"),
        ("KDEyML", "lapgyn4_surgical_actions"),
        ("MLLS", "cifar10_resnet50"),
        ("KDEyML", "hyperkvasir_therapeutic_interventions"),
        ("auto", "hyperkvasir_therapeutic_interventions"),
    ],
)
def test_the_error_on_real_logits_is_a_fraction_of_the_intervals(shared_logits, method, task):
    data, rng = shared_logits(task), np.random.default_rng(0)
    quantify = quantifier(method).fit(data.calibration)
    labels = rng.choice(data.deployment.classes, 4000, p=rng.dirichlet(np.ones(data.deployment.classes)))
    window = data.deployment.logits[[rng.choice(np.flatnonzero(data.deployment.labels == k)) for k in labels]]
    exact, summarized = quantify.estimate(window), quantify.estimate(quantify.summarize(window))
    assert (np.abs(exact.prevalence - summarized.prevalence) < 0.1 * (exact.high - exact.low)).all()


def test_fewer_cells_would_not_do(monkeypatch):
    """Positive control of the two tests above."""
    monkeypatch.setattr("lifelong_core.deploy.quantification.codebook.MOST_CELLS", 3)
    monkeypatch.setattr("lifelong_core.deploy.quantification.codebook._COARSE_CELLS", 3)
    window = draw(3000)
    quantify = quantifier("MLLS").fit(fitted("MLLS").calibration)
    exact, summarized = quantify.estimate(window), quantify.estimate(quantify.summarize(window))
    assert (np.abs(exact.prevalence - summarized.prevalence) > 0.1 * (exact.high - exact.low)).any()


batches = st.lists(st.integers(0, 40), min_size=3, max_size=3)


@given(sizes=batches, seed=st.integers(0, 1000), grouped=st.booleans())
def test_merging_is_associative_and_commutative_and_has_an_identity(sizes, seed, grouped):
    quantify, rng = fitted("MLLS"), np.random.default_rng(seed)
    windows = [draw(size, seed + index) for index, size in enumerate(sizes)]
    groups = [rng.integers(5, size=size) if grouped else None for size in sizes]
    one, two, three = (quantify.summarize(*pair) for pair in zip(windows, groups, strict=True))
    assert_same((one + two) + three, one + (two + three))
    assert_same(one + two, two + one)
    empty = quantify.summarize(np.empty((0, 3)))
    assert_same(one + empty, one)
    assert_same(empty + one, one)
    whole = quantify.summarize(np.vstack(windows), np.concatenate(groups) if grouped else None)
    assert_same(one + two + three, whole)
    assert_same(WindowSummary.merge([one, two, three]), whole)
    assert whole.samples == sum(sizes)


@pytest.mark.parametrize("method", ["PACC", "MLLS", "KDEyHD"])
def test_groups_that_cross_buckets_are_joined(method):
    quantify, window = fitted(method), np.repeat(draw(200), 4, axis=0)
    keys = np.repeat([f"patient {i}" for i in range(200)], 4)
    order = np.random.default_rng(0).permutation(800)
    parts = np.array_split(order, 5)
    summary = functools.reduce(operator.add, (quantify.summarize(window[p], keys[p]) for p in parts))
    exact, summarized = quantify.estimate(window, groups=keys), quantify.estimate(summary)
    assert summary.groups.complete
    assert summarized.effective_n == pytest.approx(exact.effective_n, rel=1e-6)
    assert summarized.high - summarized.low == pytest.approx(exact.high - exact.low, rel=0.02)
    assert summarized.degrees_of_freedom == pytest.approx(exact.degrees_of_freedom, rel=0.02)


def test_of_many_groups_a_sample_gives_the_design_effect(monkeypatch):
    """500 of 3,000 groups are kept: the standard error of the design effect is sqrt(2 / 500), 6 %."""
    monkeypatch.setattr("lifelong_core.deploy.quantification.group_sketch.MOST_GROUPS", 500)
    quantify, window = fitted("PACC"), np.repeat(draw(3000), 3, axis=0)
    keys = np.repeat(np.arange(3000), 3)
    parts = np.array_split(np.random.default_rng(0).permutation(9000), 4)
    buckets = [quantify.summarize(window[part], keys[part]) for part in parts]
    summary = sum(buckets)
    assert summary.groups.hashes.size == 500
    assert not summary.groups.complete
    assert (
        summary == buckets[0] + (buckets[1] + (buckets[2] + buckets[3]))
        or summary.groups == (buckets[3] + buckets[2] + (buckets[1] + buckets[0])).groups
    )
    exact, summarized = quantify.estimate(window, groups=keys), quantify.estimate(summary)
    assert summarized.effective_n == pytest.approx(exact.effective_n, rel=0.2)
    assert summarized.effective_n < 4000 < summarized.n
    assert summarized.high - summarized.low == pytest.approx(exact.high - exact.low, rel=0.1)


def test_a_few_very_large_groups_are_cut_to_the_budget(monkeypatch):
    monkeypatch.setattr("lifelong_core.deploy.quantification.group_sketch.MOST_ENTRIES", 2500)
    quantify, window = fitted("PACC"), draw(4000)
    keys = np.arange(4000) % 10
    buckets = [quantify.summarize(window[part::4], keys[part::4]) for part in range(4)]
    summary = sum(buckets)
    assert 1 <= summary.groups.hashes.size < 10
    assert summary.groups.cell.size <= 2500
    assert summary.groups == (buckets[2] + buckets[3] + (buckets[1] + buckets[0])).groups
    whole = quantify.summarize(window, keys)
    assert summary.groups == whole.groups
    assert quantify.estimate(summary).degrees_of_freedom.max() <= summary.groups.hashes.size - 1


def test_a_group_that_one_part_has_lost_is_not_kept_by_another_that_holds_little_of_it(monkeypatch):
    """Ten entries fit: of three groups in four cells each the third is lost, though one of its cells would fit."""
    monkeypatch.setattr("lifelong_core.deploy.quantification.group_sketch.MOST_ENTRIES", 10)
    keys, cells = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    most = GroupSketch.of(keys, cells)
    assert most.hashes.size == 2
    lost = next(key for key in range(3) if GroupSketch.of(np.array([key]), cells[:1]).hashes[0] == most.limit)
    little = GroupSketch.of(np.array([lost]), np.array([0]))
    assert little.complete
    whole = GroupSketch.of(np.append(keys, lost), np.append(cells, 0))
    for merged in (GroupSketch.merge([most, little]), GroupSketch.merge([little, most])):
        assert merged == whole


def test_keys_of_different_types_are_different_groups():
    quantify, window = fitted("CC"), draw(2)
    same = quantify.summarize(window[:1], np.array([7])) + quantify.summarize(
        window[1:], np.array([7], np.int8)
    )
    other = quantify.summarize(window[:1], np.array([7])) + quantify.summarize(window[1:], np.array(["7"]))
    assert same.groups.hashes.size == 1
    assert other.groups.hashes.size == 2


@pytest.mark.parametrize("groups", [None, ["a", "b", "a"] * 20])
@pytest.mark.parametrize("method", ["HDy", "auto"])
def test_a_summary_survives_bytes(method, groups):
    summary = fitted(method).summarize(draw(60), groups)
    content = summary.to_bytes()
    again = WindowSummary.from_bytes(content)
    assert again == summary
    assert again.to_bytes() == content
    assert fitted(method).estimate(again) == fitted(method).estimate(summary)


def test_a_summary_is_bounded_and_frozen():
    quantify = fitted("MLLS")
    summary = quantify.summarize(draw(50_000))
    assert summary.cells.size <= MOST_CELLS
    assert summary.cells.max() < MOST_CELLS
    assert len(summary.to_bytes()) < 500_000
    with pytest.raises(ValueError, match="read-only"):
        summary.counts[0] = 5


def test_points_are_the_mean_logits_of_the_cells():
    quantify, window = fitted("PACC"), draw(500)
    points, counts = quantify.summarize(window).points()
    assert counts.sum() == 500
    total = window.astype(float) - window.astype(float).mean(axis=1, keepdims=True)
    assert counts @ points == pytest.approx(total.sum(axis=0), abs=1e-3)
    assert points.dtype == np.float32


def test_moments_are_those_of_the_assumption_test():
    quantify, window = fitted("PACC"), draw(300)
    summary = quantify.summarize(window[:100]) + quantify.summarize(window[100:])
    assert summary.moments == pytest.approx(quantify.assumption_reference.features(window).sum(axis=0))


@every_method
def test_extreme_logits_are_never_lost(method):
    """A few outputs far beyond the calibration set's, next to ordinary ones: their sums and their say stay."""
    quantify, window = fitted(method), draw(400)
    window[:40] = 1e4 * np.eye(3)[np.arange(40) % 3]
    summary = quantify.summarize(window)
    assert np.isfinite(summary.feature_sums).all()
    assert np.abs(summary.logit_sums).max() > 9e4
    exact, summarized = quantify.estimate(window), quantify.estimate(summary)
    assert (np.abs(exact.prevalence - summarized.prevalence) < 0.1 * (exact.high - exact.low)).all()
    points, counts = summary.points()
    extreme = np.abs(points).max(axis=1) > 3000
    assert counts[extreme].sum() == 40, "mixed with ordinary samples"


@pytest.mark.parametrize("classes", [2, 40])
def test_few_and_many_classes(classes):
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=6 * classes)])
    calibration = LabeledLogits(3 * np.eye(classes)[labels] + rng.normal(size=(labels.size, classes)), labels)
    quantify = quantifier("PACC").fit(calibration)
    window = calibration.logits[::2]
    assert quantify.prevalence(quantify.summarize(window)) == pytest.approx(
        quantify.prevalence(window), abs=1e-9
    )


def test_a_constant_per_row_changes_no_cell():
    window = draw(500).astype(np.float64)
    book = Codebook.of(fitted("CC").calibration)
    moved = window + np.random.default_rng(0).normal(size=(500, 1))
    assert (book.cells(window.astype(np.float32)) == book.cells(moved.astype(np.float32))).mean() > 0.99


def test_the_codebook_is_a_function_of_the_calibration_set():
    calibration, window = fitted("CC").calibration, draw(500)
    assert Codebook.of(calibration).cells(window).tolist() == Codebook.of(calibration).cells(window).tolist()


def test_summaries_of_other_quantifiers_are_refused():
    mine, theirs = fitted("PACC"), fitted("ACC")
    window = draw(10)
    with pytest.raises(InvalidInputError) as caught:
        mine.prevalence(theirs.summarize(window))
    assert caught.value.field == "summary"
    with pytest.raises(InvalidInputError) as caught:
        mine.summarize(window) + theirs.summarize(window)
    assert caught.value.field == "quantifier_digest"


def test_grouped_and_ungrouped_samples_do_not_mix():
    quantify, window = fitted("CC"), draw(10)
    with pytest.raises(InvalidInputError) as caught:
        quantify.summarize(window) + quantify.summarize(window, np.arange(10))
    assert caught.value.field == "groups"
    with pytest.raises(InvalidInputError) as caught:
        quantify.estimate(quantify.summarize(window), groups=np.arange(10))
    assert caught.value.field == "groups"
    with pytest.raises(TypeError):
        1 + quantify.summarize(window)


@every_method
def test_an_empty_summary_is_no_window(method):
    with pytest.raises(InvalidInputError) as caught:
        fitted(method).estimate(fitted(method).summarize(np.empty((0, 3))))
    assert caught.value.field == "logits"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cells": np.array([1, 1])}, "cells"),
        ({"cells": np.array([-1, 1])}, "cells"),
        ({"cells": np.array([1, MOST_CELLS])}, "cells"),
        ({"counts": np.array([1])}, "counts"),
        ({"counts": np.array([1, 0])}, "counts"),
        ({"feature_sums": np.zeros((3, 3))}, "feature_sums"),
        ({"logit_sums": np.full((2, 3), np.nan)}, "logit_sums"),
        ({"moments": np.array([np.inf])}, "moments"),
        ({"groups_cell": np.array([0, 5])}, "groups"),
        ({"groups_group": np.array([0, 2])}, "groups"),
        ({"log_norms": np.zeros(3)}, "log_norms"),
        ({"groups_counts": np.array([0, 1])}, "groups"),
        ({"groups_hashes": np.array([9, 3], dtype=np.uint64)}, "groups"),
        ({"groups_limit": None}, "groups"),
        ({"cells": None}, "cells"),
    ],
)
def test_damaged_summaries_are_named(change, field):
    arrays = {
        "quantifier_digest": np.asarray("abc"),
        "cells": np.array([0, 1]),
        "counts": np.array([1, 2]),
        "feature_sums": np.zeros((2, 3)),
        "logit_sums": np.zeros((2, 3)),
        "moments": np.zeros(4),
        "log_norms": np.zeros(2),
        "groups_hashes": np.array([3, 9], dtype=np.uint64),
        "groups_group": np.array([0, 1]),
        "groups_cell": np.array([0, 1]),
        "groups_counts": np.array([1, 2]),
        "groups_limit": np.asarray(np.uint64(10)),
    }
    assert WindowSummary.from_bytes(write_npz(arrays)).samples == 3
    damaged = {name: array for name, array in (arrays | change).items() if array is not None}
    with pytest.raises(InvalidInputError) as caught:
        WindowSummary.from_bytes(write_npz(damaged))
    assert caught.value.field == field


@pytest.mark.parametrize("method", ["CC", "MLLS", "auto"])
@pytest.mark.parametrize("name", ["feature_sums", "logit_sums", "moments"])
def test_summaries_that_lost_a_column_are_refused_by_their_quantifier(method, name):
    summary = fitted(method).summarize(draw(50))
    cut = replace(summary, **{name: getattr(summary, name)[..., :-1].copy()})
    with pytest.raises(InvalidInputError) as caught:
        fitted(method).estimate(cut)
    assert caught.value.field == "summary"
    with pytest.raises(InvalidInputError) as caught:
        cut + summary
    assert caught.value.field == "summary"


def test_points_of_the_largest_logits_are_finite():
    largest = 3e38 * (2 * np.eye(3) - 1)
    points, _ = fitted("PACC").summarize(largest).points()
    assert np.isfinite(points).all()
    assert points.max() == np.finfo(np.float32).max


def test_files_of_another_kind_are_refused():
    with pytest.raises(InvalidInputError) as caught:
        WindowSummary.from_bytes(b"PK no zip")
    assert caught.value.field == "summary"
    content = write_npz({"a": np.arange(3, dtype=">i4")})
    assert {name: array.tolist() for name, array in read_npz(content, ["a"], ["b"], field="x").items()} == {
        "a": [0, 1, 2]
    }
    with pytest.raises(InvalidInputError) as caught:
        read_npz(content, ["a", "b"], field="x")
    assert caught.value.field == "b"
