"""The logit-scale match, on rows and on summaries."""

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, quantifier
from lifelong_core.deploy.performance.unlabelled_window import match_scale
from lifelong_core.deploy.quantification.codebook import LogitScale
from lifelong_core.values.errors import InvalidInputError


def sample(counts, seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(3), counts))
    strength = np.array([2.0, 3, 4])[labels, np.newaxis]
    return LabeledLogits(strength * np.eye(3)[labels] + rng.normal(size=(labels.size, 3)), labels)


@pytest.fixture(scope="module")
def fitted():
    return quantifier("auto").fit(sample([300, 300, 300], 1))


def matched(fitted, window):
    return match_scale(fitted, window, fitted.analyse(window), None)


def test_another_prevalence_is_no_other_scale(fitted):
    # Class 2 has the largest logits: their mean norm is another one, as the prevalence explains.
    window = sample([100, 200, 1700], 2).logits
    found = matched(fitted, window)
    assert found.factor == 1
    assert found.window is window


@pytest.mark.parametrize("scale", [0.4, 0.7, 1.5, 3])
@pytest.mark.parametrize("summarized", [False, True])
def test_scaled_logits_get_their_scale_back(fitted, scale, summarized):
    window = (scale * sample([100, 200, 700], 3).logits).astype(np.float32)
    found = matched(fitted, fitted.summarize(window) if summarized else window)
    assert found.factor == pytest.approx(1 / scale, rel=0.05)
    assert found.analysis.estimate.prevalence == pytest.approx([0.1, 0.2, 0.7], abs=0.05)


def test_the_doubt_of_a_change_is_kept(fitted):
    window = (2 * sample([100, 200, 700], 3).logits).astype(np.float32)
    doubt = 0.01 * (np.eye(3) - 1 / 3)
    found = match_scale(fitted, window, fitted.analyse(window).with_change_doubt(doubt), None)
    assert found.analysis.change_doubt == pytest.approx(doubt)


def test_log_norms_are_those_of_centred_logits():
    data = sample([40, 30, 20], 4)
    scale = LogitScale.of(data)
    centred = data.logits - data.logits.mean(axis=1, keepdims=True)
    norms = np.log(np.sqrt((centred.astype(np.float64) ** 2).sum(axis=1)))
    assert scale.log_norms(data.logits) == pytest.approx(norms, rel=1e-5)
    for k in range(3):
        assert scale.means[k] == pytest.approx(norms[data.labels == k].mean(), rel=1e-5)
        assert scale.variances[k] == pytest.approx(norms[data.labels == k].var(), rel=1e-4)
    assert scale.sums(data.logits) == pytest.approx([norms.sum(), (norms**2).sum()], rel=1e-5)


def test_absurd_rows_count_within_bounds():
    scale = LogitScale.of(sample([40, 30, 20], 4))
    values = scale.log_norms(np.array([[0, 0, 0], [1e30, 0, 0]], np.float32))
    assert values.tolist() == pytest.approx([scale.lowest, scale.highest])
    zero = LogitScale.of(LabeledLogits(np.zeros((4, 2)), [0, 1, 0, 1]))
    assert np.isfinite(zero.means).all()


def test_only_the_maker_rescales_a_summary(fitted):
    other = quantifier("MLLS").fit(fitted.calibration).summarize(sample([9, 9, 9], 5).logits)
    with pytest.raises(InvalidInputError, match="another quantifier"):
        fitted.rescale(other, 2.0)


def test_a_clear_difference_of_scale_leaves_little_doubt(fitted):
    window = sample([100, 200, 700], 3).logits
    slight = matched(fitted, (1.15 * window).astype(np.float32))
    clear = matched(fitted, (2 * window).astype(np.float32))
    assert slight.deviation < clear.deviation
    assert 0 < clear.doubt < 0.05 < slight.doubt < 1
    assert matched(fitted, window).doubt == 0
