"""The benchmark of class-specific confidence: its samples, its windows and its differences."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.class_specific_confidence import Case, imbalanced, measure, members, paired_differences
from benchmarks.corrupted_digits import CORRUPTIONS, SHARES, corrupt, split_digits
from benchmarks.datasets import synthetic_task
from lifelong_core.deploy.performance.confidence.registry import CONFIDENCE_METHODS


def test_prevalence_falls_geometrically_in_the_order_of_the_classes():
    prevalence = imbalanced(np.array([1, 0, 2]), 100.0)
    assert prevalence == pytest.approx(np.array([10, 100, 1]) / 111)


def test_samples_have_the_prevalence_without_repetition():
    labels = np.repeat([0, 1, 2], [50, 100, 40])
    rows = members(labels, np.array([0.6, 0.3, 0.1]), np.random.default_rng(0))
    assert np.bincount(labels[rows]).tolist() == [50, 25, 8]
    assert np.unique(rows).size == rows.size


def test_no_image_is_in_two_parts():
    parts = split_digits(np.random.default_rng(0))
    assert [len(part.labels) for part in parts] == pytest.approx(np.multiply(SHARES, 1797), abs=6)
    images = np.concatenate([part.images for part in parts]).reshape(1797, -1)
    assert len(np.unique(images, axis=0)) == 1797


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corruptions_grow_with_their_severity(name):
    images = split_digits(np.random.default_rng(0))[2].images
    changes = []
    for severity in (1, 3):
        changed = corrupt(images, name, severity, np.random.default_rng(1))
        assert changed.shape == images.shape
        assert changed.min() >= 0
        assert changed.max() <= 1
        changes.append(np.abs(changed - images).mean())
    assert 0 < changes[0] < changes[1]


def test_every_method_is_measured_on_every_window():
    task = synthetic_task(3, 300)
    case = Case("gaussian", task.calibration, imbalanced(np.arange(3), 5.0), [("none", task.deployment)])
    rows = measure(case, 0)
    assert [row["windows"] for row in rows] == ["same", "equal"]
    assert all(row["error"].keys() == CONFIDENCE_METHODS.keys() for row in rows)
    assert all(0 <= error < 30 for row in rows for error in row["error"].values())


def test_differences_count_each_seed_once():
    errors = dict.fromkeys(CONFIDENCE_METHODS, 1.0)
    rows = [
        {"seed": seed, "error": {**errors, "CS-TS": 1.0 + change}}
        for seed, change in ((0, -1.0), (0, -2.0), (1, 0.5), (2, -1.0))
    ]
    found = paired_differences(rows)["CS-TS"]
    assert found["difference"] == pytest.approx(np.mean([-1.5, 0.5, -1.0]))
    assert found["p_value"] == pytest.approx(stats.ttest_rel([-1.5, 0.5, -1.0], [0, 0, 0]).pvalue)
    assert found["seeds_won"] == 2
