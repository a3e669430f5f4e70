"""Change points are detected where they are, with few false ones."""

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, quantifier
from lifelong_core.deploy.shift.change_points import ChangePoint, find_change_points
from lifelong_core.deploy.shift.ordered_window import OrderedWindow
from lifelong_core.values.errors import InvalidInputError

LEVEL = 0.005
BEFORE, AFTER = np.array([0.6, 0.3, 0.1]), np.array([0.35, 0.3, 0.35])


@pytest.fixture(scope="module")
def three(population):
    return population(3, 1.5)


@pytest.fixture(scope="module")
def fitted(three):
    return quantifier("MLLS").fit(three.draw([300, 300, 300], np.random.default_rng(0)))


def stream(three, parts, rng):
    """Logits of successive (prevalence, samples)."""
    return np.vstack([three.window(prevalence, samples, rng) for prevalence, samples in parts])


def segmentation(fitted, rows, groups=None):
    return find_change_points(OrderedWindow.of_rows(fitted, rows, groups), level=LEVEL)


def found_in(fitted, rows, groups=None):
    return segmentation(fitted, rows, groups).changes


def test_a_change_is_found_at_its_time_with_its_size(three, fitted):
    """The interval holds the true time in 19 of 20 windows, and in so many that of the size holds its size."""
    rng = np.random.default_rng(1)
    held, sized = 0, 0
    for _ in range(40):
        (change,) = found_in(fitted, stream(three, [(BEFORE, 2000), (AFTER, 1000)], rng))
        assert abs(change.samples_ago - 1000) < 200
        held += change.low <= 1000 <= change.high
        sized += change.size_low <= 0.5 <= change.size_high
    assert held >= 34  # 38 expected; fewer twice in a thousand
    assert sized >= 34


def test_both_changes_are_found(three, fitted):
    rows = stream(three, [(BEFORE, 2000), (AFTER, 1500), (BEFORE, 1500)], np.random.default_rng(2))
    first, second = found_in(fitted, rows)
    assert first.samples_ago == pytest.approx(3000, abs=100)
    assert second.samples_ago == pytest.approx(1500, abs=100)


@pytest.mark.parametrize("samples", [150, 600, 3000])
def test_a_window_without_a_change_has_none(three, fitted, samples):
    """At the level 0.005, 1 of 200 windows at most is expected to show one; more than 6 once in a thousand."""
    rng = np.random.default_rng(3)
    windows = [three.window(rng.dirichlet([1, 1, 1]), samples, rng) for _ in range(200)]
    assert sum(len(found_in(fitted, window)) > 0 for window in windows) <= 6


def test_what_groups_repeat_is_no_change(three, fitted):
    """Ten like samples in a row of each patient change the mix all the time, unless it is known whose they are."""
    rng = np.random.default_rng(4)
    patients = [three.window(BEFORE, 150, rng) for _ in range(20)]
    rows = [np.repeat(window, 10, axis=0) for window in patients]
    keys = np.repeat(np.arange(150), 10)
    alone = [segmentation(fitted, window) for window in rows]
    grouped = [segmentation(fitted, window, keys) for window in rows]
    assert sum(one.pattern == "jitter" or len(one.changes) > 0 for one in alone) >= 15
    assert sum(one.pattern is not None or len(one.changes) > 0 for one in grouped) <= 1


def test_a_change_does_not_cut_successive_samples_of_a_group(three, fitted):
    rng = np.random.default_rng(5)
    rows = stream(three, [(BEFORE, 2000), (AFTER, 1000)], rng)
    keys = np.arange(3000) // 7
    (change,) = found_in(fitted, rows, keys)
    assert (3000 - change.samples_ago) % 7 == 0


def test_summaries_show_the_same_change(three, fitted):
    rows = stream(three, [(BEFORE, 2000), (AFTER, 1000)], np.random.default_rng(6))
    keys = np.arange(3000) // 2
    buckets = [slice(begin, begin + 250) for begin in range(0, 3000, 250)]
    # Up to the ends of the buckets, and to those beside them: a change may have come within one.
    for groups in (None, keys):
        parts = [fitted.summarize(rows[b], None if groups is None else groups[b]) for b in buckets]
        window = OrderedWindow.of_summaries(fitted, [parts[0], fitted.summarize(rows[:0]), *parts[1:]])
        (change,) = find_change_points(window, level=LEVEL).changes
        (exact,) = found_in(fitted, rows, groups)
        assert (change.low, change.samples_ago, change.high) == (750, 1000, 1250)
        assert change.size == pytest.approx(exact.size, abs=0.05)


def test_the_names_of_the_classes_do_not_matter(three):
    rows = stream(three, [(BEFORE, 2000), (AFTER, 1000)], np.random.default_rng(7))
    calibration = three.draw([300, 300, 300], np.random.default_rng(8))
    order = np.array([2, 0, 1])
    renamed = LabeledLogits(calibration.logits[:, order], np.argsort(order)[calibration.labels])
    (one,) = found_in(quantifier("MLLS").fit(calibration), rows)
    (other,) = found_in(quantifier("MLLS").fit(renamed), rows[:, order])
    assert one.samples_ago == other.samples_ago
    assert one.size == pytest.approx(other.size, abs=1e-6)


@pytest.mark.parametrize("method", ["ACC", "KDEyML", "auto"])
def test_every_quantifier_can_follow_changes(three, method):
    fitted = quantifier(method).fit(three.draw([200, 200, 200], np.random.default_rng(9)))
    rows = stream(three, [(BEFORE, 1500), (AFTER, 800)], np.random.default_rng(10))
    (change,) = found_in(fitted, rows)
    assert change.samples_ago == pytest.approx(800, abs=150)


def test_windows_too_small_to_split_have_no_change(three, fitted):
    for samples in (1, 2, 30, 119):
        assert found_in(fitted, three.window(BEFORE, samples, np.random.default_rng(samples))) == ()


def test_an_outbreak_is_one_change(three, fitted):
    """The samples after it scatter more than those before, which made chance look like changes that undo each other."""
    rng = np.random.default_rng(11)
    for _ in range(30):
        rows = stream(three, [([0.98, 0.01, 0.01], 4200), ([0.3, 0.3, 0.4], 800)], rng)
        found = segmentation(fitted, rows)
        assert found.pattern is None
        assert [change.samples_ago for change in found.changes] == [pytest.approx(800, abs=60)]


def test_one_abrupt_change_of_separable_classes_is_one(population):
    clear = population(2, 8.0)
    fitted = quantifier("MLLS").fit(clear.draw([300, 300], np.random.default_rng(12)))
    rng = np.random.default_rng(13)
    held = 0
    for ago in rng.integers(1000, 2000, size=20).tolist():
        rows = stream(clear, [([0.99, 0.01], 5000 - ago), ([0.01, 0.99], ago)], rng)
        (change,) = found_in(fitted, rows)
        held += change.low <= ago <= change.high
    assert held >= 17  # 19 expected


def test_the_interval_of_a_change_near_the_end_reaches_to_its_time(three, fitted):
    rng = np.random.default_rng(14)
    for ago in (40, 55):
        rows = stream(three, [([0.9, 0.05, 0.05], 4000), ([0.02, 0.03, 0.95], ago)], rng)
        assert found_in(fitted, rows)[-1].low <= ago


def test_a_change_within_a_bucket_lies_in_its_interval(three, fitted):
    rng = np.random.default_rng(15)
    for ago in (1050, 1120, 950):
        rows = stream(three, [(BEFORE, 3000 - ago), (AFTER, ago)], rng)
        parts = [fitted.summarize(rows[begin : begin + 200]) for begin in range(0, 3000, 200)]
        (change,) = find_change_points(OrderedWindow.of_summaries(fitted, parts), level=LEVEL).changes
        assert change.low <= ago <= change.high


def test_a_change_within_the_last_block_of_a_large_window(three, fitted):
    rng = np.random.default_rng(19)
    rows = stream(three, [([0.98, 0.01, 0.01], 29_920), ([0.01, 0.01, 0.98], 80)], rng)
    assert found_in(fitted, rows)[-1].samples_ago == pytest.approx(80, abs=10)


def test_one_patient_is_no_change(three, fitted):
    """Two hundred images of one patient at the end of the window say nothing of the population."""
    rng = np.random.default_rng(16)
    keys = np.concatenate([np.arange(4000), np.full(200, 4000)])
    for _ in range(10):
        rows = stream(three, [(BEFORE, 4000), ([0.02, 0.03, 0.95], 200)], rng)
        assert found_in(fitted, rows, keys) == ()
        assert len(found_in(fitted, rows)) == 1


def test_a_change_survives_its_document():
    change = ChangePoint(100, 90, 120, 0.5, 0.4, 0.6)
    assert ChangePoint.from_document(change.to_document()) == change


@pytest.mark.parametrize(
    "values", [{"samples_ago": "x"}, {"low": None}, {"size": {}}, {"changed_at": 5}, {"changed_at": "noon"}]
)
def test_a_document_with_other_values_is_refused(values):
    document = ChangePoint(100, 90, 120, 0.5, 0.4, 0.6).to_document()
    with pytest.raises(InvalidInputError, match=next(iter(values))):
        ChangePoint.from_document({**document, **values})


@pytest.mark.parametrize("method", ["ACC", "MLLS"])
def test_summaries_of_another_quantifier_are_refused(population, three, fitted, method):
    other = quantifier(method).fit(population(2).draw([100, 100], np.random.default_rng(17)))
    parts = [fitted.summarize(three.window(BEFORE, 200, np.random.default_rng(18)))] * 2
    with pytest.raises(InvalidInputError, match="another quantifier"):
        OrderedWindow.of_summaries(other, parts)
