import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, fit_head, head_fitting, quantifier
from lifelong_core.deploy.fitted_calibration import FittedCalibration
from lifelong_core.deploy.head_fitting import FOLDS, held_out_output
from lifelong_core.deploy.shift.reference import ScoreReference

COSTS = [[0, 1, 2], [1, 0, 1], [4, 2, 0]]
TARGET = (0.6, 0.3, 0.1)


@pytest.fixture(scope="module")
def calibration() -> LabeledLogits:
    labels = np.repeat([0, 1, 2], 50)
    rng = np.random.default_rng(3)
    return LabeledLogits(1.5 * np.eye(3)[labels] + rng.normal(size=(150, 3)), labels)


def test_a_quantifier_has_one_fitted_calibration(calibration):
    fitted = quantifier("PACC").fit(calibration)
    own = FittedCalibration.of(fitted)
    assert own.quantifier is fitted
    assert own.data is calibration
    assert FittedCalibration.of(fitted) is own
    assert FittedCalibration.of(quantifier("PACC").fit(calibration)) is not own


def test_the_reference_of_the_last_head_is_kept(calibration):
    fitted = FittedCalibration.of(quantifier("PACC").fit(calibration))
    first, second = (fit_head(calibration, COSTS, target_prevalence=p) for p in (TARGET, TARGET[::-1]))
    kept = fitted.score_reference(first)
    assert kept == ScoreReference.of(calibration, first)
    assert fitted.score_reference(first) is kept
    assert fitted.score_reference(second) == ScoreReference.of(calibration, second) != kept
    assert fitted.score_reference(first) == kept


def test_all_factors_of_the_logits_use_the_same_heads(calibration, monkeypatch):
    head = fit_head(calibration, COSTS, target_prevalence=TARGET)
    fits = list[int]()
    fitted = FittedCalibration.of(quantifier("MLLS").fit(calibration))

    def counted(data, *arguments, **options):
        fits.append(data.samples)
        return fit_head(data, *arguments, **options)

    monkeypatch.setattr(head_fitting, "fit_head", counted)
    assert fitted.held_out_output(head) == held_out_output(calibration, head)
    half = fitted.held_out_output(head, factor=0.5)
    assert fits == [150, *[120] * FOLDS] * 2
    assert half == held_out_output(calibration, head, factor=0.5) != fitted.held_out_output(head)
