"""The contract of every quantifier."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import QUANTIFIERS, LabeledLogits, PrevalenceEstimate, quantifier
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError
from tests.unit.costly import costly

SETTINGS = {"KDEyHD": {"trials": 1000}}
"""For speed: fewer points of the Monte Carlo sum than the default."""

every_method = pytest.mark.parametrize("method", QUANTIFIERS)
adjusting = pytest.mark.parametrize("method", [name for name in QUANTIFIERS if name not in ("CC", "PCC")])


def task(classes, *, scale=1.0, samples=60, seed=0):
    """Calibration data of a decent, over-confident model, and a window of a shifted population."""
    rng = np.random.default_rng(seed)

    def draw(labels):
        return scale * (3 * np.eye(classes)[labels] + rng.normal(size=(labels.size, classes)))

    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=samples)])
    window = rng.choice(classes, size=100, p=rng.dirichlet(np.full(classes, 0.5)))
    return LabeledLogits(draw(labels), labels), draw(window).astype(np.float32)


def fit(method, calibration):
    return quantifier(method, **SETTINGS.get(method, {})).fit(calibration)


def assert_on_the_simplex(prevalence):
    assert prevalence.min() >= 0
    assert prevalence.sum() == pytest.approx(1, abs=1e-9)


@every_method
@pytest.mark.parametrize(("classes", "scale"), [(2, 1e4 / 3), (3, 0.1), (8, 1e4 / 3), (30, 0.1)])
def test_estimates_lie_on_the_simplex_inside_their_intervals(method, classes, scale):
    calibration, window = task(classes, scale=scale, samples=20 * classes)
    if (method, classes, scale) == ("HDy", 30, 0.1):
        # All probabilities are near 1/30: with eight bins they look the same.
        with pytest.raises(UnidentifiableError, match="HDy"):
            fit(method, calibration)
        return
    fitted = fit(method, calibration)
    for rows in (window, window[:1], window[:2], window[window.argmax(axis=1) == window[0].argmax()]):
        estimate = fitted.estimate(rows)
        assert_on_the_simplex(estimate.prevalence)
        assert fitted.prevalence(rows).tolist() == estimate.prevalence.tolist()
        assert (estimate.low <= estimate.prevalence).all()
        assert (estimate.prevalence <= estimate.high).all()
        assert estimate.low.min() >= 0
        assert estimate.high.max() <= 1
        assert (estimate.n, estimate.method, estimate.confidence) == (len(rows), method, 0.95)
        assert 0 < estimate.effective_n <= len(rows)


@every_method
def test_a_hundred_classes(method):
    calibration, window = task(100, samples=1500)
    assert_on_the_simplex(fit(method, calibration).estimate(window).prevalence)


@every_method
@costly
@given(seed=st.integers(0, 10_000), classes=st.sampled_from([2, 3, 5]))
def test_permuting_the_classes_permutes_the_estimate(method, seed, classes):
    calibration, window = task(classes, seed=seed)
    order = np.random.default_rng(seed).permutation(classes)
    renamed = LabeledLogits(calibration.logits[:, order], np.argsort(order)[calibration.labels])
    one = fit(method, calibration).estimate(window)
    other = fit(method, renamed).estimate(window[:, order])
    assert other.prevalence == pytest.approx(one.prevalence[order], abs=1e-5)
    assert other.low == pytest.approx(one.low[order], abs=1e-4)
    assert other.high == pytest.approx(one.high[order], abs=1e-4)


@every_method
@costly
@given(seed=st.integers(0, 10_000), classes=st.sampled_from([2, 3, 5]))
def test_a_constant_per_row_changes_nothing(method, seed, classes):
    calibration, window = task(classes, seed=seed)
    constants = np.random.default_rng(seed).normal(size=(len(window), 1)).astype(np.float32)
    fitted = fit(method, calibration)
    assert fitted.prevalence(window + constants) == pytest.approx(fitted.prevalence(window), abs=1e-4)


@every_method
def test_the_order_of_the_window_does_not_matter(method):
    calibration, window = task(4)
    fitted = fit(method, calibration)
    shuffled = np.random.default_rng(1).permutation(window)
    assert fitted.prevalence(shuffled) == pytest.approx(fitted.prevalence(window), abs=1e-9)


@every_method
def test_equal_inputs_give_equal_answers(method):
    calibration, window = task(4)
    one = fit(method, calibration).estimate(window, rng=5)
    other = fit(method, calibration).estimate(window, rng=5)
    assert one == other
    assert PrevalenceEstimate.from_document(one.to_document()) == one


@adjusting
def test_finds_the_prevalence_of_a_shifted_population(method, population):
    three, rng = population(3, 2.5), np.random.default_rng(0)
    calibration = three.draw([600, 600, 600], rng)
    labels = rng.permutation(np.repeat([0, 1, 2], [3200, 600, 200]))
    # What EMQ takes for posteriors are ones only where the model is calibrated.
    scale = three.separation if method == "EMQ" else 1.0
    fitted = fit(method, LabeledLogits(calibration.logits * np.float32(scale), calibration.labels))
    window = three.logits(labels, rng) * np.float32(scale)
    assert fitted.prevalence(window) == pytest.approx([0.8, 0.15, 0.05], abs=0.03)


def test_classify_and_count_is_fooled_by_a_shift(population):
    """The positive control of the test above: without adjustment the estimate is off."""
    three, rng = population(3, 1.5), np.random.default_rng(0)
    fitted = quantifier("CC").fit(three.draw([600] * 3, rng))
    assert (
        np.abs(fitted.prevalence(three.window([0.9, 0.05, 0.05], 4000, rng)) - [0.9, 0.05, 0.05]).sum() > 0.1
    )


@every_method
def test_higher_confidence_means_wider_intervals(method):
    calibration, window = task(3)
    fitted = fit(method, calibration)
    narrow, wide = fitted.estimate(window, confidence=0.5), fitted.estimate(window, confidence=0.99)
    assert (wide.high - wide.low > narrow.high - narrow.low).all()
    low, high = wide.interval(0.5)
    assert low.tolist() == narrow.low.tolist()
    assert high.tolist() == narrow.high.tolist()


@every_method
def test_more_samples_mean_narrower_intervals(method, population):
    three, rng = population(3), np.random.default_rng(0)
    fitted = fit(method, three.draw([400] * 3, rng))
    widths = [
        (estimate.high - estimate.low).mean()
        for estimate in (fitted.estimate(three.window([0.5, 0.3, 0.2], n, rng)) for n in (100, 1000, 10_000))
    ]
    assert widths[0] > widths[1] > widths[2]


@every_method
def test_one_sample_says_nothing_about_the_spread(method):
    calibration, window = task(3)
    estimate = fit(method, calibration).estimate(window[:1])
    assert estimate.low.tolist() == [0, 0, 0]
    assert estimate.high.tolist() == [1, 1, 1]
    assert estimate.degrees_of_freedom.tolist() == [0, 0, 0]


@every_method
def test_a_window_without_a_class_does_not_prove_that_there_is_none(method, population):
    two, rng = population(2, 6.0), np.random.default_rng(0)
    fitted = fit(method, two.draw([200, 200], rng))
    estimate = fitted.estimate(two.logits(np.zeros(100, dtype=int), rng))
    assert estimate.prevalence[1] < 0.01
    assert 0.01 < estimate.high[1] < 0.05  # three in a hundred, by the rule of three


@every_method
def test_copies_in_groups_count_once(method, population):
    three, rng = population(3), np.random.default_rng(0)
    calibration, window = three.draw([400] * 3, rng), three.window([0.5, 0.3, 0.2], 300, rng)
    fitted = fit(method, calibration)
    copies, keys = np.repeat(window, 4, axis=0), np.repeat(np.arange(300), 4)
    alone, grouped, naive = (
        fitted.estimate(window),
        fitted.estimate(copies, groups=keys),
        fitted.estimate(copies),
    )
    # The prior of auto counts samples, not groups: it weighs less beside 1,200 than beside 300.
    assert grouped.prevalence == pytest.approx(alone.prevalence, abs=1e-3 if method == "auto" else 1e-6)
    assert grouped.effective_n == pytest.approx(300)
    assert naive.effective_n == 1200
    # The pseudo-samples weigh a little less beside 1,200 than beside 300.
    assert grouped.high - grouped.low == pytest.approx(alone.high - alone.low, rel=0.1)
    assert (naive.high - naive.low < grouped.high - grouped.low).all()


@every_method
def test_groups_of_one_change_nothing(method):
    calibration, window = task(3)
    fitted = fit(method, calibration)
    keys = np.array([f"patient {i}" for i in range(len(window))])
    plain, grouped = fitted.estimate(window), fitted.estimate(window, groups=keys)
    assert grouped.covariance == pytest.approx(plain.covariance, rel=1e-9)
    assert grouped.effective_n == pytest.approx(plain.effective_n)


@pytest.mark.parametrize("method", ["ACC", "PACC", "BBSE", "MLLS", "KDEyML", "KDEyHD", "KDEyCS"])
def test_copied_calibration_patients_count_once(method, population):
    """The window is so large that the calibration set makes nearly all of the interval."""
    three, rng = population(3), np.random.default_rng(0)
    calibration, window = three.draw([60] * 3, rng), three.window([0.6, 0.3, 0.1], 20_000, rng)
    rows = np.repeat(np.arange(180), 4)
    copies = LabeledLogits(calibration.logits[rows], calibration.labels[rows], rows)
    alone = fit(method, calibration).estimate(window)
    grouped = fit(method, copies).estimate(window)
    naive = fit(method, LabeledLogits(copies.logits, copies.labels)).estimate(window)
    widths = [np.sqrt(np.diag(estimate.covariance)).mean() for estimate in (alone, grouped, naive)]
    # Not the same: the folds of the cross-fitting are dealt out otherwise.
    assert widths[1] == pytest.approx(widths[0], rel=0.2)
    assert widths[2] < 0.75 * widths[1]


@pytest.mark.parametrize("method", ["PACC", "MLLS", "KDEyML", "HDy", "KDEyHD", "KDEyCS", "auto"])
def test_a_single_calibration_sample_of_a_class_widens_the_intervals(method, population):
    three, rng = population(3), np.random.default_rng(0)
    calibration, window = three.draw([60, 60, 60], rng), three.window([0.4, 0.3, 0.3], 2000, rng)
    rare = np.flatnonzero(calibration.labels == 2)
    widths = []
    for kept in (60, 5, 1):
        fitted = fit(method, calibration.select(np.delete(np.arange(180), rare[kept:])))
        estimate = fitted.estimate(window)
        widths.append((estimate.high - estimate.low)[2])
    assert widths[0] < widths[1] <= widths[2]
    assert widths[0] < widths[2] - 0.05


@pytest.mark.parametrize("method", ["PACC", "MLLS", "KDEyML"])
@pytest.mark.parametrize("groups", [None, [7, 7, 7]])
def test_a_calibration_set_that_shows_no_spread_gives_no_interval(method, groups, population):
    three, rng = population(3, 4.0), np.random.default_rng(0)
    fitted = fit(method, LabeledLogits(three.logits(np.arange(3), rng), [0, 1, 2], groups))
    estimate = fitted.estimate(three.window([0.4, 0.3, 0.3], 200, rng))
    assert estimate.low.tolist() == [0, 0, 0]
    assert estimate.high.tolist() == [1, 1, 1]


@pytest.mark.parametrize("method", ["ACC", "PACC", "BBSE", "MLLS", "HDy", "KDEyML", "KDEyHD", "KDEyCS"])
def test_intervals_cover_the_population(method, population):
    """Nominal 95 %, over redraws of calibration set and window; 360 intervals, so 90 % is four errors away."""
    three, rng = population(3), np.random.default_rng(1)
    covered = []
    for _ in range(40):
        fitted = fit(method, three.draw([50, 50, 50], rng))
        for _ in range(3):
            truth = rng.dirichlet(np.ones(3))
            estimate = fitted.estimate(three.window(truth, 300, rng))
            covered.extend((estimate.low <= truth) & (truth <= estimate.high))
    assert np.mean(covered) > 0.9


@pytest.mark.parametrize("method", ["ACC", "PACC", "BBSE", "MLLS", "KDEyML", "KDEyCS"])
def test_the_covariance_is_that_of_repeated_experiments(method, population):
    three, rng = population(3), np.random.default_rng(2)
    truth = np.array([0.5, 0.3, 0.2])
    estimates = [
        fit(method, three.draw([80] * 3, rng)).estimate(three.window(truth, 300, rng)) for _ in range(120)
    ]
    claimed = np.sqrt(np.mean([np.diag(estimate.covariance) for estimate in estimates], axis=0))
    observed = np.std([estimate.prevalence for estimate in estimates], axis=0)
    assert claimed == pytest.approx(observed, rel=0.25)


@every_method
def test_a_class_without_calibration_samples_is_refused(method):
    calibration, _ = task(3)
    missing = calibration.select(calibration.labels < 2)
    with pytest.raises(UnidentifiableError, match="class 2"):
        fit(method, missing)


def toy_of_example_6_5():
    """Thesis Ex. 6.5: two kinds of images for three classes; class 1 shows either."""
    kind = np.array([0] * 30 + [0, 1] * 15 + [1] * 30)
    labels = np.repeat([0, 1, 2], 30)
    return LabeledLogits(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])[kind], labels)


@adjusting
def test_a_degenerate_confusion_is_refused_instead_of_inverted(method):
    with pytest.raises(UnidentifiableError, match=method) as caught:
        fit(method, toy_of_example_6_5())
    assert caught.value.field == "calibration"


@pytest.mark.parametrize(
    ("method", "advised"), [("ACC", True), ("BBSE", True), ("PACC", False), ("auto", False)]
)
def test_only_methods_of_decisions_are_told_to_look_at_probabilities(method, advised):
    with pytest.raises(UnidentifiableError, match="erge the classes, or improve the model") as caught:
        fit(method, toy_of_example_6_5())
    assert ("probabilities" in caught.value.hint) == advised
    assert caught.value.hint[0].isupper()


@adjusting
def test_a_model_that_always_says_the_same_is_refused(method):
    constant = LabeledLogits(np.tile([[0.1, 0.7]], (40, 1)), [0, 1] * 20)
    with pytest.raises(UnidentifiableError):
        fit(method, constant)


def test_a_class_that_is_never_decided_is_lost_to_acc_but_not_to_pacc():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    logits = 2 * np.eye(3)[labels] + 0.3 * rng.normal(size=(300, 3)) - [0, 0, 5]
    calibration = LabeledLogits(logits, labels)
    with pytest.raises(UnidentifiableError):
        quantifier("ACC").fit(calibration)
    assert_on_the_simplex(quantifier("PACC").fit(calibration).prevalence(logits))


def test_the_digest_covers_method_settings_and_data():
    first, again, other = (
        [fit(method, calibration).digest for method in QUANTIFIERS]
        for calibration in (task(3)[0], task(3)[0], task(3, seed=1)[0])
    )
    assert first == again
    assert len({*first, *other}) == 2 * len(QUANTIFIERS)


def test_the_bandwidth_is_a_setting_of_kdeyml():
    calibration, window = task(3)
    default, same, wide = (
        quantifier("KDEyML", **settings).fit(calibration)
        for settings in ({}, {"bandwidth": 0.1}, {"bandwidth": 0.5})
    )
    assert default.digest == same.digest != wide.digest
    assert default.prevalence(window).tolist() != wide.prevalence(window).tolist()
    assert_on_the_simplex(quantifier("KDEyML", bandwidth=1e-4).fit(calibration).estimate(window).prevalence)


@pytest.mark.parametrize(
    ("name", "settings", "field"),
    [
        ("SLSQP", {}, "quantifier"),
        ("", {}, "quantifier"),
        ("CC", {"bandwidth": 0.1}, "bandwidth"),
        ("KDEyML", {"kernel": 1}, "kernel"),
        ("KDEyML", {"bandwidth": "wide"}, "bandwidth"),
        ("KDEyML", {"bandwidth": np.nan}, "bandwidth"),
    ],
)
def test_unknown_methods_and_settings_are_named(name, settings, field):
    with pytest.raises(InvalidInputError) as caught:
        quantifier(name, **settings)
    assert caught.value.field == field


@pytest.mark.parametrize("bandwidth", [0, -1, 9e-5])
def test_the_bandwidth_has_a_lower_limit(bandwidth):
    with pytest.raises(InvalidInputError) as caught:
        quantifier("KDEyML", bandwidth=bandwidth).fit(task(3)[0])
    assert caught.value.field == "bandwidth"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"logits": np.empty((0, 3))}, "logits"),
        ({"logits": [[0.0, 1.0]]}, "logits"),
        ({"logits": [[0.0, 1.0, np.nan]]}, "logits"),
        ({"logits": [[0.0, 1.0, 2.0]], "groups": ["a", "b"]}, "groups"),
        ({"logits": [[0.0, 1.0, 2.0]], "confidence": 1.0}, "confidence"),
    ],
)
def test_bad_windows_are_named(arguments, field):
    """All methods check them in the same place."""
    fitted = fit("auto", task(3)[0])
    with pytest.raises(InvalidInputError) as caught:
        fitted.estimate(**arguments)
    assert caught.value.field == field
