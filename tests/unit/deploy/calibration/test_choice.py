"""The chosen calibration, on populations with a known right choice."""

from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, fit_affine
from lifelong_core.deploy.calibration import choice
from lifelong_core.deploy.calibration.choice import CREDIBLE_BIASES, FOLDS, choose_calibration
from lifelong_core.deploy.calibration.matrix_scaling import (
    MatrixProblem,
    fit_matrix,
    inverse_hessian,
    losses_and_probabilities,
)
from lifelong_core.deploy.labeled import stratified_folds


def draw(rng, samples, *, noise=None, prevalence=(0.5, 0.3, 0.2), scale=1.0):
    """Unit-variance noise asks for scaling by the separation, 1.5; correlated noise for a matrix."""
    labels = np.concatenate([np.arange(3).repeat(2), rng.choice(3, size=samples - 6, p=prevalence)])
    mixing = np.eye(3) if noise is None else noise
    return LabeledLogits(scale * (1.5 * np.eye(3)[labels] + rng.normal(size=(samples, 3)) @ mixing), labels)


def held_out_loss(calibration, data):
    scores = calibration.scores(calibration.features.of(data.logits))
    return losses_and_probabilities(scores, data.labels)[0].mean()


def affine_loss(calibration, data):
    probabilities = fit_affine(calibration.logits, calibration.labels).probabilities(data.logits)
    return -np.log(probabilities[np.arange(data.samples), data.labels]).mean()


def known_prevalence(data):
    """Logits that one temperature calibrates: the network knows the prevalence that it was trained at."""
    return LabeledLogits(2 * data.logits.astype(float) + 4 / 3 * np.log([0.5, 0.3, 0.2]), data.labels)


CORRELATED = np.array([[1.0, 1.6, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.0]])


def test_a_matrix_is_chosen_where_noise_is_correlated_and_only_there():
    rng = np.random.default_rng(0)
    plain, mixed = choose_calibration(draw(rng, 2000)), choose_calibration(draw(rng, 2000, noise=CORRELATED))
    assert mixed.problem.layout.matrix
    assert not plain.problem.layout.matrix
    fresh = draw(rng, 20_000, noise=CORRELATED)
    calibration = draw(rng, 2000, noise=CORRELATED)
    assert held_out_loss(choose_calibration(calibration), fresh) < 0.95 * affine_loss(calibration, fresh)


def test_squares_are_chosen_where_classes_differ_in_their_spread():
    rng = np.random.default_rng(1)

    def binary(samples):
        labels = rng.integers(2, size=samples)
        margin = np.where(labels == 1, 1.0, -0.5) + rng.normal(size=samples) * np.where(labels == 1, 2.0, 0.5)
        return LabeledLogits(np.column_stack([-margin, margin]), labels)

    calibration, fresh = binary(2000), binary(20_000)
    chosen = choose_calibration(calibration)
    assert chosen.features.squares
    assert held_out_loss(chosen, fresh) < 0.97 * affine_loss(calibration, fresh)


@pytest.mark.parametrize("balanced", [False, True])
def test_biases_shrink_towards_what_the_training_prevalence_asks_for(balanced):
    """The network is right at the calibration set's prevalence, or at balanced classes."""
    rng = np.random.default_rng(2)
    data = draw(rng, 300, prevalence=(0.7, 0.2, 0.1))
    right = 1.5 * data.logits.astype(float) + (0 if balanced else np.log(data.prevalence))
    chosen = choose_calibration(LabeledLogits(right, data.labels))
    assert chosen.problem.ridge.biases >= 10
    assert chosen.problem.ridge.centre.any() == balanced


def test_strongly_shrunk_biases_are_not_believed_to_be_certain():
    data = draw(np.random.default_rng(2), 300, prevalence=(0.7, 0.2, 0.1))
    right = LabeledLogits(1.5 * data.logits.astype(float) + np.log(data.prevalence), data.labels)
    chosen = choose_calibration(right)
    assert chosen.problem.ridge.biases > CREDIBLE_BIASES
    claimed = inverse_hessian(chosen.problem, chosen.parameters)
    assert np.trace(chosen.inverse) > 1.5 * np.trace(claimed)
    believed = replace(chosen.problem, ridge=replace(chosen.problem.ridge, biases=CREDIBLE_BIASES))
    assert chosen.inverse == pytest.approx(inverse_hessian(believed, chosen.parameters))


def test_small_sets_get_better_calibrations_than_affine_where_the_network_knows_its_prevalence():
    rng = np.random.default_rng(3)
    gains = []
    for _ in range(15):
        data, fresh = (known_prevalence(draw(rng, samples)) for samples in (80, 3000))
        gains.append(affine_loss(data, fresh) - held_out_loss(choose_calibration(data), fresh))
    assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(15)


def test_a_matrix_must_be_clearly_better_not_only_the_luckiest(monkeypatch):
    rng = np.random.default_rng(4)
    usual = choice.DOUBT
    chosen: dict[float, list] = {0.0: [], usual: []}
    losses: dict[float, list] = {0.0: [], usual: []}
    for _ in range(12):
        data, fresh = (known_prevalence(draw(rng, samples)) for samples in (60, 3000))
        for doubt in chosen:
            monkeypatch.setattr(choice, "DOUBT", doubt)
            calibration = choose_calibration(data)
            chosen[doubt].append(calibration.features.squares or calibration.problem.layout.matrix)
            losses[doubt].append(held_out_loss(calibration, fresh))
    assert sum(chosen[usual]) < sum(chosen[0.0])
    assert np.mean(losses[usual]) < np.mean(losses[0.0])


def test_crossfitted_scores_come_from_fits_that_have_not_seen_the_sample():
    data = draw(np.random.default_rng(4), 300, noise=CORRELATED)
    chosen = choose_calibration(data)
    folds = stratified_folds(data, FOLDS)
    for fold in range(FOLDS):
        held = folds == fold
        rest = MatrixProblem(
            chosen.problem.features[~held], data.labels[~held], chosen.problem.layout, chosen.problem.ridge
        )
        expected = chosen.problem.layout.scores(fit_matrix(rest), chosen.problem.features[held])
        assert chosen.crossfitted[held] == pytest.approx(expected, abs=1e-5)
    own = chosen.scores(chosen.features.of(data.logits))
    assert np.abs(own - chosen.crossfitted).max() > 1e-3
    assert losses_and_probabilities(chosen.crossfitted, data.labels)[0].mean() == pytest.approx(chosen.loss)


def test_copies_of_a_patient_do_not_make_the_choice_bolder():
    data = draw(np.random.default_rng(5), 60)
    rows = np.repeat(np.arange(60), 8)
    grouped = choose_calibration(LabeledLogits(data.logits[rows], data.labels[rows], rows))
    naive = choose_calibration(LabeledLogits(data.logits[rows], data.labels[rows]))
    # Seen again in the other folds, copies reward memory.
    assert naive.loss < grouped.loss
    fresh = draw(np.random.default_rng(6), 5000)
    assert held_out_loss(grouped, fresh) <= held_out_loss(naive, fresh)


@pytest.mark.parametrize("groups", [None, np.zeros(40, dtype=int)])
def test_without_cross_fitting_it_is_affine_scaling(groups):
    data = draw(np.random.default_rng(7), 40, scale=3.0)
    if groups is None:
        data = data.select(np.delete(np.arange(40), np.flatnonzero(data.labels == 2)[1:]))
    chosen = choose_calibration(LabeledLogits(data.logits, data.labels, groups))
    assert chosen.fold_parameters == ()
    expected = fit_affine(data.logits, data.labels).probabilities(data.logits)
    scores = chosen.scores(chosen.features.of(data.logits))
    assert losses_and_probabilities(scores, data.labels)[1] == pytest.approx(expected, abs=0.03)


def test_many_classes_and_few_binary_cases_get_no_matrix():
    rng = np.random.default_rng(8)
    for classes, samples in ((30, 600), (2, 499)):
        labels = np.concatenate(
            [np.arange(classes).repeat(2), rng.integers(classes, size=samples - 2 * classes)]
        )
        mixing = np.eye(classes) + 0.5 * rng.normal(size=(classes, classes))
        logits = 3 * np.eye(classes)[labels] + rng.normal(size=(samples, classes)) @ mixing
        assert not choose_calibration(LabeledLogits(logits, labels)).problem.layout.matrix
