"""Point estimates against QuaPy, an independent implementation, on real logits.

QuaPy gives the logits to a classifier that is trained already, so that its quantifiers see the same softmax.
"""

import importlib
import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator

from lifelong_core.deploy import QUANTIFIERS, LabeledLogits, fit_affine, quantifier

TASKS = ("lapgyn4_surgical_actions", "hyperkvasir_therapeutic_interventions", "cifar10_resnet50")
TOLERANCE = {
    "CC": 1e-3,
    "PCC": 1e-3,
    "ACC": 1e-3,
    "PACC": 1e-3,
    "EMQ": 1e-3,
    "HDy": 2e-3,
    "KDEyML": 2e-3,
    "KDEyCS": 2e-3,
}


class Softmax(BaseEstimator):
    """The classifier whose outputs are the logits."""

    def __init__(self, classes=2):
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, *_):
        return self

    def predict_proba(self, X):
        return softmax(np.asarray(X, dtype=float), axis=1)

    def predict(self, X):
        return np.asarray(X).argmax(axis=1)


@pytest.fixture(scope="module")
def quapy_methods():
    with warnings.catch_warnings():
        # Only while importing: optional parts of QuaPy and of what it imports that are not installed.
        warnings.simplefilter("ignore")
        return importlib.import_module("quapy.method.aggregative")


def peer(methods, name, data, **settings):
    if name not in ("CC", "PCC"):
        settings["val_split"] = None
    # What QuaPy calls HDy is for two classes; its histograms for many are those of DMy.
    kind = getattr(methods, "DMy" if name == "HDy" else name)
    fitted = kind(Softmax(data.classes), fit_classifier=False, **settings)
    return fitted.fit(data.logits, data.labels)


def bags(deployment, seed=0):
    """All of the deployment set, and samples of it with Dirichlet(1) prevalences."""
    rng = np.random.default_rng(seed)
    yield deployment.logits
    for size in (30, 500, 500, 1000):
        labels = rng.choice(deployment.classes, size=size, p=rng.dirichlet(np.ones(deployment.classes)))
        yield deployment.logits[[rng.choice(np.flatnonzero(deployment.labels == k)) for k in labels]]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["CC", "PCC", "ACC", "PACC", "KDEyML", "KDEyCS"])
def test_agrees_with_quapy(shared_logits, quapy_methods, name, task):
    data = shared_logits(task)
    ours, theirs = quantifier(name).fit(data.calibration), peer(quapy_methods, name, data.calibration)
    for window in bags(data.deployment):
        assert ours.prevalence(window) == pytest.approx(theirs.predict(window), abs=TOLERANCE[name])


@pytest.mark.parametrize("task", TASKS)
def test_hdy_agrees_with_quapy_or_is_nearer_to_the_window(shared_logits, quapy_methods, task):
    """QuaPy's search sometimes ends early; then our mean Hellinger distance must be the smaller one."""
    data = shared_logits(task)
    ours, theirs = quantifier("HDy").fit(data.calibration), peer(quapy_methods, "HDy", data.calibration)
    edges = np.arange(9) / 8

    def histograms(logits):
        columns = softmax(logits.astype(float), axis=1).T
        return np.array([np.histogram(column, edges)[0] / len(logits) for column in columns])

    classes = np.array(
        [
            histograms(data.calibration.logits[data.calibration.labels == k])
            for k in range(ours.calibration.classes)
        ]
    )

    def distance(prevalence, window):
        mixture = np.tensordot(np.clip(prevalence, 0, 1), classes, 1)
        return np.sqrt(((np.sqrt(histograms(window)) - np.sqrt(mixture)) ** 2).sum(axis=1)).mean()

    for window in bags(data.deployment):
        mine, peers = ours.prevalence(window), theirs.predict(window)
        assert distance(mine, window) <= distance(peers, window) + 1e-6
        if np.abs(mine - peers).max() > TOLERANCE["HDy"]:
            assert distance(mine, window) < distance(peers, window) - 1e-4


def test_kdeyhd_agrees_with_quapy_but_for_the_reference_sample(shared_logits, quapy_methods):
    """Both draw their own; the difference must be of the size of QuaPy's own spread over its seeds."""
    data = shared_logits("hyperkvasir_therapeutic_interventions")
    windows = list(bags(data.deployment))[1:]
    theirs = np.array(
        [
            [fitted.predict(window)[0] for window in windows]
            for fitted in (peer(quapy_methods, "KDEyHD", data.calibration, random_state=i) for i in range(3))
        ]
    )
    for seed in range(3):
        ours = quantifier("KDEyHD", seed=seed).fit(data.calibration)
        estimates = [ours.prevalence(window)[0] for window in windows]
        assert estimates == pytest.approx(theirs.mean(axis=0), abs=2e-3)
    wider = quantifier("KDEyHD", bandwidth=0.3).fit(data.calibration)
    assert [wider.prevalence(window)[0] for window in windows] != pytest.approx(theirs.mean(axis=0), abs=2e-3)


@pytest.mark.parametrize("name", ["CC", "PCC", "PACC"])
def test_agrees_with_quapy_on_a_hundred_classes(shared_logits, quapy_methods, name):
    data = shared_logits("cifar100_resnet20")
    ours, theirs = quantifier(name).fit(data.calibration), peer(quapy_methods, name, data.calibration)
    window = data.deployment.logits[:1000]
    assert ours.prevalence(window) == pytest.approx(theirs.predict(window), abs=TOLERANCE[name])


@pytest.mark.parametrize("task", [*TASKS, "cifar100_resnet20"])
def test_em_agrees_with_quapy_or_is_further_on_the_same_way(shared_logits, quapy_methods, task):
    """QuaPy ends EM at a step below 1e-4 in the mean: here up to .002 too early, with 100 classes up to .04.

    So we must agree with its EM run to the end, and be more likely where we do not agree with its default.
    """
    data = shared_logits(task)
    assumed = data.calibration.prevalence

    class Patient(quapy_methods.EMQ):
        MAX_ITER = 50_000

    windows = list(bags(data.deployment))
    for window in windows[2:3] if data.calibration.classes == 100 else windows:
        posteriors = softmax(window.astype(float), axis=1)

        def likelihood(prevalence, posteriors=posteriors):
            return float(np.log(posteriors @ (prevalence / assumed)).mean())

        ours = quantifier("EMQ").fit(data.calibration).prevalence(window)
        converged, _ = Patient.EM(assumed, posteriors, epsilon=1e-9)
        assert ours == pytest.approx(converged, abs=TOLERANCE["EMQ"])
        assert likelihood(ours) >= likelihood(converged) - 1e-12
        default = peer(quapy_methods, "EMQ", data.calibration).predict(window)
        if np.abs(ours - default).max() > TOLERANCE["EMQ"]:
            assert likelihood(ours) > likelihood(default)


@pytest.mark.parametrize("task", TASKS)
def test_mlls_is_em_on_affine_calibrated_posteriors(shared_logits, quapy_methods, task):
    data = shared_logits(task)
    fitted = fit_affine(data.calibration.logits, data.calibration.labels)
    for window in bags(data.deployment):
        expected, _ = quapy_methods.EMQ.EM(
            data.calibration.prevalence, fitted.probabilities(window), epsilon=1e-9
        )
        assert quantifier("MLLS").fit(data.calibration).prevalence(window) == pytest.approx(
            expected, abs=1e-3
        )


def test_every_method_has_a_peer():
    tested_by_themselves = {"MLLS", "KDEyHD", "BBSE", "auto"}
    assert {*TOLERANCE, *tested_by_themselves} >= set(QUANTIFIERS)


def test_the_comparison_can_fail(shared_logits, quapy_methods):
    """Positive control: another bandwidth, and a calibration set with swapped labels, are noticed."""
    data = shared_logits("lapgyn4_surgical_actions")
    window = data.deployment.logits[:500]
    theirs = peer(quapy_methods, "KDEyML", data.calibration).predict(window)
    ours = quantifier("KDEyML", bandwidth=1.0).fit(data.calibration).prevalence(window)
    assert np.abs(ours - theirs).max() > TOLERANCE["KDEyML"]
    swapped = LabeledLogits(data.calibration.logits, (data.calibration.labels + 1) % 8)
    adjusted = peer(quapy_methods, "ACC", data.calibration).predict(window)
    assert np.abs(quantifier("ACC").fit(swapped).prevalence(window) - adjusted).max() > TOLERANCE["ACC"]
