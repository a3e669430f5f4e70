"""Labels that look wrong at random: found where there are some, and not elsewhere."""

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.calibration_acceptance.wrong_labels import (
    NoisyAffineProblem,
    estimate_label_noise,
    find_label_noise,
)

REAL = (
    "cifar10_resnet50",
    "cifar100_resnet20",
    "hyperkvasir_therapeutic_interventions",
    "lapgyn4_surgical_actions",
)


def noisy(data, share, seed):
    rng = np.random.default_rng(seed)
    wrong = rng.random(data.samples) < share
    moved = rng.integers(1, data.classes, data.samples)
    return LabeledLogits(data.logits, (data.labels + wrong * moved) % data.classes, data.groups)


@pytest.mark.parametrize("name", REAL)
def test_wrong_labels_of_real_classifiers_are_counted(shared_logits, name):
    data = shared_logits(name).deployment
    assert find_label_noise(data) is None
    for seed in range(4):
        rows = np.random.default_rng(seed).permutation(data.samples)[:500]
        assert find_label_noise(data.select(rows)) is None
    for share in (0.1, 0.2):
        noise = find_label_noise(noisy(data, share, 1))
        assert noise is not None
        assert noise.rate == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("factor", [0.2, 1.0, 10.0])
def test_over_confidence_is_no_label_noise(population, factor):
    data = population(4).draw([150] * 4, np.random.default_rng(2))
    assert find_label_noise(LabeledLogits(factor * data.logits, data.labels)) is None


def test_cases_of_one_patient_are_one_witness(population):
    data = noisy(population(3).draw([60] * 3, np.random.default_rng(3)), 0.2, 3)
    alone = estimate_label_noise(data)
    grouped = estimate_label_noise(LabeledLogits(data.logits, data.labels, np.arange(180) // 60))
    assert grouped.rate == alone.rate
    assert grouped.gain < alone.gain / 10


def test_the_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(0)
    problem = NoisyAffineProblem(rng.normal(size=(50, 4)), rng.integers(4, size=50))
    at, step = rng.normal(size=6) * 0.3 + np.array([1, 0, 0, 0, 0, 0.4]), 1e-6 * np.eye(6)
    slopes = [
        (problem.loss_and_gradient(at + e)[0] - problem.loss_and_gradient(at - e)[0]) / 2e-6 for e in step
    ]
    assert problem.loss_and_gradient(at)[1] == pytest.approx(np.array(slopes), abs=1e-7)
