import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy.label_shift.assumption_test import (
    AssumptionReference,
    _step_test,
    assumption_test,
)
from lifelong_core.deploy.label_shift.drift import ClassSpread
from lifelong_core.deploy.label_shift.result import AssumptionTest, _per_cent, drift_disagreements
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.numerics.simplex import smooth
from lifelong_core.values.arrays import centre_rows
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError
from tests.unit.costly import costly

CLASSES = 4


class OverconfidentModel:
    """Classes of unequal spread that are confused unequally, with logits two and a half times too large."""

    def __init__(self, classes=CLASSES):
        rng = np.random.default_rng(3)
        self.classes = classes
        self.centres = 2.2 * np.eye(classes) + 0.6 * rng.normal(size=(classes, classes))
        self.spreads = np.linspace(0.7, 1.3, classes)

    def logits(self, labels, rng):
        noise = rng.standard_t(6, size=(labels.size, self.classes)) * self.spreads[labels][:, np.newaxis]
        return (2.5 * (self.centres[labels] + noise)).astype(np.float32)

    def calibration(self, counts, rng, groups=None):
        labels = rng.permutation(np.repeat(np.arange(self.classes), counts))
        return LabeledLogits(self.logits(labels, rng), labels, groups)

    def window(self, prevalence, size, rng):
        return self.logits(rng.choice(self.classes, size=size, p=prevalence), rng)


def judge(reference, window, **settings):
    return assumption_test(reference, reference.features(window).mean(axis=0), n=len(window), **settings)


@pytest.fixture(scope="module")
def model():
    return OverconfidentModel()


@pytest.fixture(scope="module")
def reference(model):
    return AssumptionReference.of(model.calibration([900, 500, 300, 100], np.random.default_rng(0)))


@pytest.fixture(scope="module")
def real_reference(shared_logits):
    """Reference of a real calibration set, computed once for each task."""
    return cache(lambda task: AssumptionReference.of(shared_logits(task).calibration))


@pytest.fixture
def window(model):
    return model.window([0.1, 0.2, 0.3, 0.4], 1000, np.random.default_rng(1))


# How often it refuses


@pytest.mark.parametrize("size", [200, 2000])
def test_refuses_rarely_under_a_pure_prevalence_shift_however_strong(model, size):
    rng = np.random.default_rng(size)
    p_values = []
    for _ in range(14):
        reference = AssumptionReference.of(model.calibration([350, 200, 120, 30], rng))
        for _ in range(12):
            window = model.window(rng.dirichlet(np.ones(CLASSES)), size, rng)
            p_values.append(judge(reference, window, level=0.01).p_value)
    # 168 windows: 1.7 at the nominal level; more than 6 have a probability of 3e-3 there.
    assert np.sum(np.array(p_values) < 0.01) <= 6
    # ... and it is not merely blind: small p-values occur about as often as they should.
    assert 0.04 <= np.mean(np.array(p_values) < 0.2) <= 0.35


DRIFTS = {
    "scaled": lambda rows, _: 0.7 * rows,
    "sharpened": lambda rows, _: 1.4 * rows,
    "noise": lambda rows, rng: rows + 0.5 * rows.std() * rng.normal(size=rows.shape),
    "moved": lambda rows, _: rows + 2.5 * np.eye(CLASSES)[1],
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_refuses_when_the_logits_of_a_class_change(model, reference, drift):
    rng = np.random.default_rng(5)
    rejections = 0
    for _ in range(40):
        window = model.window(rng.dirichlet(np.ones(CLASSES)), 1000, rng)
        rejections += judge(reference, DRIFTS[drift](window, rng), level=0.01).rejected
    assert rejections >= 36


@pytest.mark.parametrize(
    ("task", "least"),
    [("lapgyn4_surgical_actions", 0.75), ("cifar10_resnet50", 0.75)],
)
def test_on_real_logits_it_finds_one_logit_moved_by_a_half_and_keeps_its_level(shared_logits, task, least):
    pool = shared_logits(task).calibration
    rng = np.random.default_rng(7)
    rows = [np.flatnonzero(pool.labels == k) for k in range(pool.classes)]
    found = false = 0
    for _ in range(3):
        # Calibration set and windows are drawn from the same distribution, the pool itself.
        reference = AssumptionReference.of(pool.select(rng.integers(pool.samples, size=1600)))
        for _ in range(14):
            labels = rng.choice(pool.classes, size=1000, p=rng.dirichlet(np.ones(pool.classes)))
            window = pool.logits[[rng.choice(rows[k]) for k in labels]]
            false += judge(reference, window).rejected
            moved = window + 0.5 * np.eye(pool.classes, dtype=np.float32)[rng.integers(pool.classes)]
            found += judge(reference, moved).rejected
    assert false <= 4
    assert found >= least * 42


def test_an_unseen_class_among_the_samples_is_refused_and_hinted_at(model, reference):
    # Nothing that the model knows speaks for these samples: their logits lie between those of the classes.
    rng = np.random.default_rng(2)
    window = model.window(np.ones(CLASSES) / CLASSES, 1500, rng)
    unseen = rng.random(1500) < 0.15
    window[unseen] = rng.normal(size=(unseen.sum(), CLASSES))
    test = judge(reference, window)
    assert test.rejected
    (hint,) = [item for item in test.disagreements if item.kind == "unseen_class"]
    assert "More samples lie between the classes" in hint.text


def test_samples_unlike_every_class_are_hinted_at(model, reference):
    rng = np.random.default_rng(3)
    window = model.window(np.ones(CLASSES) / CLASSES, 1500, rng)
    window[:150] = [30, 30, -30, -30]
    test = judge(reference, window)
    assert test.rejected
    hints = [item for item in test.disagreements if item.kind == "unlike_every_class"]
    assert hints[0].amount == pytest.approx(0.1, abs=0.05)


def test_dependent_samples_count_as_their_effective_number(model, reference):
    # A window of 100 distinct samples, each 10 times: no more evidence than the 100, however many rows.
    rng = np.random.default_rng(4)
    naive = honest = 0
    for _ in range(60):
        window = np.repeat(model.window(rng.dirichlet(np.ones(CLASSES)), 100, rng), 10, axis=0)
        naive += judge(reference, window).rejected
        honest += judge(reference, window, effective_n=100).rejected
    assert honest <= 3
    assert naive >= 50


def test_calibration_samples_of_one_patient_count_together(model):
    # Each patient shifts its own logits at random: 15 patients say less than 900 independent samples.
    rng = np.random.default_rng(6)
    ignoring = respecting = 0
    for _ in range(12):
        patients = np.repeat(np.arange(15), 60)
        labels = rng.choice(CLASSES, size=900)
        logits = model.logits(labels, rng) + 3 * rng.normal(size=(15, CLASSES))[patients]
        drawn = rng.choice(CLASSES, size=2000, p=rng.dirichlet(5 * np.ones(CLASSES)))
        window = model.logits(drawn, rng) + 3 * rng.normal(size=(2000, CLASSES))
        alone = LabeledLogits(logits, labels)
        ignoring += judge(AssumptionReference.of(alone), window).rejected
        respecting += judge(AssumptionReference.of(LabeledLogits(logits, labels, patients)), window).rejected
    assert respecting <= 1
    assert ignoring >= 4


def test_on_the_border_of_the_simplex_classes_without_samples_give_their_freedom_back():
    """Windows of one class alone: p-values of the steps are uniform only if the other five classes count as free."""
    rng = np.random.default_rng(10)
    labels = np.repeat(np.arange(6), 400)
    data = LabeledLogits(np.eye(6)[labels], labels)
    rows = 3 * np.eye(8)[labels] + rng.normal(size=(labels.size, 8))
    spread = ClassSpread.of(rows, data)
    weights = smooth(np.eye(6)[0], 500)
    chance = np.linalg.cholesky(spread.covariance(np.eye(6)[0], 500))
    p_values = [
        _step_test(spread, spread.means[0] + chance @ rng.normal(size=8), weights, 500).p_value
        for _ in range(400)
    ]
    assert 0.42 < np.mean(p_values) < 0.62
    assert np.mean(np.array(p_values) < 0.05) < 0.09


def test_what_is_not_known_about_the_mix_counts_for_a_detector_that_it_moves(reference, model):
    """A detector that sees nothing but the prevalence: its distance is the error of the estimated mix.

    That is, its error as an estimate of the shares that the window really has.
    """
    rng = np.random.default_rng(11)
    labels = np.repeat(np.arange(CLASSES), [80, 60, 40, 20])
    truth = np.bincount(labels) / 200
    own = np.array([1.0, -1.0, 2.0, 0.0])
    nothing = np.zeros((CLASSES, 1, 1))
    seeing = replace(
        reference,
        detectors=replace(
            reference.detectors,
            drifts=reference.detectors.drifts[:1],
            weights=np.zeros((1, reference.size)),
            effects=np.ones(1),
        ),
        drifts=replace(
            reference.drifts,
            means=(own - own @ truth)[:, np.newaxis],
            covariances=nothing,
            everywhere=nothing[0],
        ),
    )
    sizes = [judge(seeing, model.logits(labels, rng)).tests[2].statistic for _ in range(60)]
    assert 0.7 < np.sqrt(np.mean(np.square(sizes))) < 1.3


# What does not matter to it


def test_parts_of_a_window_add_up_to_the_whole(reference, window):
    whole = reference.features(window)
    sums = reference.feature_sums(window[:300]) + reference.feature_sums(window[300:])
    np.testing.assert_allclose(sums / len(window), whole.mean(axis=0), atol=1e-12)
    assert judge(reference, window) == assumption_test(reference, whole.mean(axis=0), n=1000)


def test_sums_of_many_rows_are_those_of_their_blocks(reference, window):
    many = np.tile(window, (20, 1))
    np.testing.assert_allclose(
        reference.feature_sums(many), 20 * reference.features(window).sum(axis=0), rtol=1e-9, atol=1e-7
    )


def test_features_are_bounded_whatever_the_logits(reference):
    extreme = np.random.default_rng(0).choice([-1e4, 0, 1e4, 3e38], size=(50, CLASSES)).astype(np.float32)
    features = reference.features(extreme)
    assert features.shape == (50, reference.size)
    assert np.abs(features).max() <= 1


@costly
@given(seed=st.integers(0, 10**6))
def test_a_constant_added_to_a_row_changes_nothing(reference, model, seed):
    rng = np.random.default_rng(seed)
    window = model.window(np.ones(CLASSES) / CLASSES, 300, rng)
    constant = 2.0 ** rng.integers(-3, 3, size=(300, 1))
    moved = judge(reference, (window + constant).astype(np.float32))
    assert moved.p_value == pytest.approx(judge(reference, window).p_value, rel=0.02)


def test_renumbering_the_classes_renumbers_the_answer(model, window):
    calibration = model.calibration([500, 300, 200, 100], np.random.default_rng(0))
    order = np.array([2, 0, 3, 1])
    renumbered = LabeledLogits(calibration.logits[:, order], np.argsort(order)[calibration.labels])
    changed = window + 2 * np.eye(CLASSES, dtype=np.float32)[1]
    here = judge(AssumptionReference.of(calibration), changed)
    there = judge(AssumptionReference.of(renumbered), changed[:, order])
    assert there.statistic == pytest.approx(here.statistic, rel=1e-3)
    assert here.disagreements[0].class_index == 1
    assert order[there.disagreements[0].class_index] == 1


def test_equal_inputs_give_equal_answers(model, window):
    calibration = model.calibration([300, 300, 300, 300], np.random.default_rng(0))
    first, second = (judge(AssumptionReference.of(calibration), window) for _ in range(2))
    assert first == second


# What it says


def test_reports_the_logit_that_moved_and_by_how_much(reference, window):
    test = judge(reference, window + 2 * np.eye(CLASSES, dtype=np.float32)[2], class_names=list("abcd"))
    worst = test.disagreements[0]
    assert (worst.kind, worst.class_index) == ("moved_logit", 2)
    assert worst.amount == pytest.approx(2, rel=0.35)
    assert "'c' is higher" in worst.text
    assert worst.size > 5
    sizes = [abs(item.size) for item in test.disagreements]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.996, "100 %"), (0.426, "43 %"), (0.0096, "1 %"), (0.0094, "0.9 %"), (0.002, "0.2 %")],
)
def test_shares_are_whole_per_cent_or_have_one_decimal(share, words):
    assert _per_cent(share) == words


def test_a_large_move_has_no_exponent(reference):
    detectors = reference.detectors
    errors = detectors.effects * 1e-6
    sizes = np.array([118.0 / drift.step for drift in detectors.drifts]) * 1e6
    assert drift_disagreements(detectors, sizes, errors, None)[0].text.endswith("is higher by about 120.")


def test_far_samples_are_counted_in_per_cent(reference, model):
    window = model.window(np.ones(CLASSES) / CLASSES, 600, np.random.default_rng(3))
    window[:] = [30, 30, -30, -30]
    texts = [
        item.text for item in judge(reference, window).disagreements if item.kind == "unlike_every_class"
    ]
    assert "e+" not in texts[0]
    assert 90 < int(texts[0].split(" %")[0]) <= 100


@pytest.mark.parametrize("factor", [0.7, 0.85, 1.2])
def test_reports_the_factor_of_scaled_logits(reference, window, factor):
    scaled = [
        item for item in judge(reference, factor * window).disagreements if item.kind == "scaled_logits"
    ]
    assert scaled[0].amount == pytest.approx(factor, rel=0.2)


FOREIGN = {
    "flat": lambda rows, _: 0.1 * rows,
    "half": lambda rows, rng: (rows + rng.permutation(rows)) / 2,
    "unsure": lambda rows, _: 0.33 * rows,
    "noise": lambda rows, rng: rows + 2 * rows.std(axis=0) * rng.normal(size=rows.shape),
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_no_figure_is_given_for_samples_between_the_classes_or_noise(shared_logits, real_reference, foreign):
    """It was up to 3.2 times too large: how far one sample moves the detector depends on where it lies."""
    task = shared_logits("cifar10_resnet50")
    reference = real_reference("cifar10_resnet50")
    rng = np.random.default_rng(1)
    window = centre_rows(task.calibration.logits[rng.integers(task.calibration.samples, size=2000)])
    window[:200] = FOREIGN[foreign](window[:200], rng)
    test = judge(reference, window)
    assert test.rejected
    found = [item for item in test.disagreements if item.kind in ("unseen_class", "noisy_logits")]
    assert found
    assert all(item.amount is None and not any(map(str.isdigit, item.text)) for item in found)


@pytest.mark.parametrize("factor", [0.5, 0.85, 1.2, 1.4])
@pytest.mark.parametrize("task", ["cifar10_resnet50", "lapgyn4_surgical_actions"])
def test_what_is_said_of_the_factor_is_true(shared_logits, real_reference, task, factor):
    calibration = shared_logits(task).calibration
    rows = np.random.default_rng(2).integers(calibration.samples, size=2000)
    test = judge(real_reference(task), factor * centre_rows(calibration.logits[rows]))
    texts = [item.text for item in test.disagreements if item.kind == "scaled_logits"]
    for text in texts:
        said = float(re.findall(r"about ([0-9.]*[0-9])", text)[0])
        if text.endswith(" or less."):
            assert factor <= 1.05 * said
        elif text.endswith(" or more."):
            assert factor >= 0.95 * said
        else:
            assert factor == pytest.approx(said, rel=0.05)
    if 0.8 < factor <= 1.2:
        assert texts


def test_a_quiet_window_has_no_disagreement_to_speak_of(reference, window):
    test = judge(reference, window)
    assert not test.rejected
    assert all(abs(item.size) < 4 for item in test.disagreements)


@pytest.mark.parametrize(("samples", "reliable"), [(125, True), (124, False)])
def test_promises_nothing_below_500_calibration_samples(model, window, samples, reliable):
    calibration = model.calibration([samples, 125, 125, 125], np.random.default_rng(0))
    assert judge(AssumptionReference.of(calibration), window).reliable is reliable


def test_the_p_value_is_that_of_its_smallest_part_times_their_number(reference, window):
    test = judge(reference, window + np.eye(CLASSES, dtype=np.float32)[0])
    assert [part.name for part in test.tests] == ["steps", "waves", "drifts"]
    assert test.p_value == min(1.0, 3 * min(part.p_value for part in test.tests))


def test_rejects_just_below_the_level(reference, window):
    p_value = judge(reference, window + np.eye(CLASSES, dtype=np.float32)[0]).p_value
    for level in (p_value * 1.001, p_value * 0.999):
        test = judge(reference, window + np.eye(CLASSES, dtype=np.float32)[0], level=level)
        assert test.rejected == (level > p_value)


def test_survives_json(reference, window):
    test = judge(reference, 0.7 * window)
    assert test.disagreements
    assert AssumptionTest.from_json(test.to_json()) == test
    assert AssumptionTest.from_document(test.to_document()) == test


@pytest.mark.parametrize(
    "broken", [{"tests": "steps"}, {"tests": [{"name": "steps"}]}, {"disagreements": [1]}]
)
def test_a_broken_document_names_its_field(reference, window, broken):
    document = {**judge(reference, window).to_document(), **broken}
    with pytest.raises(InvalidInputError) as caught:
        AssumptionTest.from_document(document)
    assert caught.value.field == next(iter(broken))


# Calibration sets and windows at the edge


def degenerate(kind, rng):
    labels = np.repeat([0, 1, 2], [300, 200, 100])
    if kind == "constant":
        return LabeledLogits(np.ones((600, 3)), labels)
    if kind == "decisions only":
        guesses = np.where(rng.random(600) < 0.8, labels, rng.integers(3, size=600))
        return LabeledLogits(5 * np.eye(3)[guesses], labels)
    if kind == "separable":
        return LabeledLogits(20 * np.eye(3)[labels] + rng.normal(size=(600, 3)), labels)
    if kind == "one sample of a class":
        labels = np.repeat([0, 1, 2], [399, 200, 1])
        return LabeledLogits(3 * np.eye(3)[labels] + rng.normal(size=(600, 3)), labels)
    if kind == "one group":
        return LabeledLogits(3 * np.eye(3)[labels] + rng.normal(size=(600, 3)), labels, np.zeros(600))
    if kind == "extreme":
        return LabeledLogits(1e4 * (np.eye(3)[labels] + rng.normal(size=(600, 3))), labels)
    return LabeledLogits(
        3 * np.eye(3)[labels[::200]] + rng.normal(size=(3, 3)), labels[::200] * 0 + [0, 1, 2]
    )


@pytest.mark.parametrize(
    "kind",
    [
        "constant",
        "decisions only",
        "separable",
        "one sample of a class",
        "one group",
        "extreme",
        "three samples",
    ],
)
def test_degenerate_calibration_sets_give_finite_answers_and_explain_themselves(kind):
    rng = np.random.default_rng(8)
    calibration = degenerate(kind, rng)
    reference = AssumptionReference.of(calibration)
    rejected = 0
    for _ in range(20):
        own = calibration.logits[rng.integers(calibration.samples, size=150)]
        test = judge(reference, own)
        assert np.isfinite(test.statistic)
        assert 0 <= test.p_value <= 1
        rejected += test.rejected
    assert rejected <= 1


def test_ties_do_not_make_it_refuse():
    # Logits rounded to halves: cuts lie between values, so that neither rounding nor constants move a sample.
    rng = np.random.default_rng(9)
    model = OverconfidentModel(3)
    rejections = 0
    for _ in range(8):
        calibration = model.calibration([300, 200, 100], rng)
        reference = AssumptionReference.of(
            LabeledLogits(np.round(calibration.logits / 2) * 2, calibration.labels)
        )
        for _ in range(10):
            window = np.round(model.window(rng.dirichlet(np.ones(3)), 1000, rng) / 2) * 2
            rejections += judge(reference, window + np.float32(0.1)).rejected
    assert rejections <= 4


@pytest.mark.parametrize(("size", "reliable"), [(1, False), (99, False), (100, True)])
def test_promises_nothing_for_windows_below_100_samples(reference, model, size, reliable):
    test = judge(reference, model.window([0, 0, 0, 1], size, np.random.default_rng(0)))
    assert test.reliable is reliable
    assert np.isfinite(test.statistic)


def test_a_class_without_calibration_samples_is_refused():
    with pytest.raises(UnidentifiableError, match="class 2"):
        AssumptionReference.of(LabeledLogits(np.eye(3)[[0, 1, 0, 1]], [0, 1, 0, 1]))


def test_a_hundred_classes_of_a_dozen_samples_keep_the_level_and_the_features_few():
    # Features fitted on so few samples flatter these samples: the reference has to be cross-fitted.
    rng = np.random.default_rng(1)

    def logits(labels):
        return 3 * np.eye(100)[labels] + rng.normal(size=(labels.size, 100))

    labels = np.repeat(np.arange(100), 12)
    reference = AssumptionReference.of(LabeledLogits(logits(labels), labels))
    assert reference.size <= 320
    windows = [logits(rng.choice(100, size=1500)) for _ in range(5)]
    assert sum(judge(reference, window).rejected for window in windows) == 0
    assert sum(judge(reference, 0.7 * window).rejected for window in windows) == 5


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("mean_features", {"mean_features": [0.0, 1.0]}),
        ("mean_features", {"mean_features": "many"}),
        ("n", {"n": 0}),
        ("n", {"n": 1.5}),
        ("effective_n", {"effective_n": 0}),
        ("effective_n", {"effective_n": 1001}),
        ("level", {"level": 1}),
        ("class_names", {"class_names": ["a", "b"]}),
    ],
)
def test_illegal_arguments_are_named(reference, window, field, arguments):
    legal = {"mean_features": reference.features(window).mean(axis=0), "n": 1000}
    with pytest.raises(InvalidInputError) as caught:
        assumption_test(reference, **{**legal, **arguments})
    assert caught.value.field == field


def test_logits_of_another_model_are_refused(reference):
    with pytest.raises(InvalidInputError, match="4 columns"):
        reference.features(np.zeros((5, 3)))
