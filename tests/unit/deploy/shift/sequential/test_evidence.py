import json
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from lifelong_core.deploy import PostProcessingHead, fit_head
from lifelong_core.deploy.shift import evidence as module
from lifelong_core.deploy.shift.betting import BucketScores, bucket_scores
from lifelong_core.deploy.shift.evidence import LARGEST_LOG_CAPITAL, ShiftEvidence, update_evidence
from lifelong_core.deploy.shift.reference import ScoreReference
from lifelong_core.values.errors import InvalidInputError

ALARM = np.log(175_200)
PREVALENCE = np.array([0.5, 0.3, 0.2])
SHIFTED = np.array([0.4, 0.4, 0.2])


@cache
def fitted(population, counts):
    calibration = population(3, 2.0).draw(counts, np.random.default_rng(len(counts)))
    head = fit_head(calibration, 1 - np.eye(3), target_prevalence=PREVALENCE)
    return head, ScoreReference.of(calibration, head)


class Stream:
    """A model of three classes with a head, and buckets of any prevalence."""

    tolerance = 0.01

    def __init__(self, population, seed=0, counts=(3000, 3000, 3000)):
        self.three = population(3, 2.0)
        self.rng = np.random.default_rng(seed)
        self.head, self.reference = fitted(population, counts)

    def logits(self, prevalence, size):
        return self.three.window(prevalence, size, self.rng)

    def bucket(self, prevalence=PREVALENCE, size=500):
        return bucket_scores(self.head, self.logits(prevalence, size))

    def gather(self, evidence, buckets, key="key"):
        return update_evidence(evidence, self.reference, buckets, key=key, tolerance=self.tolerance)

    def first_alarm(self, evidence, buckets):
        """Number of the look that raises an alarm; None: none does."""
        for look, bucket in enumerate(buckets, start=1):
            evidence = self.gather(evidence, [bucket])
            if evidence.log_e_value >= ALARM:
                return look
        return None


@pytest.fixture
def stream(population):
    return Stream(population)


SCORES = np.array([[0.9, 0.06, 0.04], [0.1, 0.7, 0.2], [0.05, 0.15, 0.8]])


def expected_capitals(chances, looks, tolerance):
    """Mean of each bet's capital over all sequences of one-sample buckets, exactly, shape (J,)."""
    means = np.column_stack([SCORES[0], SCORES[1], SCORES[2]])
    expectation = means @ PREVALENCE
    spread = (SCORES - expectation).T @ np.diag(PREVALENCE) @ (SCORES - expectation)
    reference = ScoreReference(expectation, means, spread, np.zeros((3, 3)), np.full(3, 100.0))
    single = [BucketScores(1, row, np.outer(row, row)) for row in SCORES]
    total = np.zeros(1)
    for drawn in product(range(3), repeat=looks):
        found = update_evidence(None, reference, [single[k] for k in drawn], key="key", tolerance=tolerance)
        total = total + np.prod(chances[list(drawn)]) * np.expm1(found.log_capitals)
    return total


@pytest.mark.parametrize("move", [[0, 0, 0], [0.03, -0.03, 0], [-0.01, 0.03, -0.02]])
def test_no_capital_exceeds_the_looks_on_average_inside_the_zone(move):
    """E[M_t] <= t of an e-detector, by enumeration; learned bets and tempering included."""
    capitals = expected_capitals(PREVALENCE + move, looks=4, tolerance=0.03)
    assert (capitals <= 4 + 1e-9).all()
    assert capitals.max() > 2.5  # and is no idle promise


def test_capital_exceeds_the_looks_on_average_outside_the_zone():
    assert expected_capitals(np.array([0.1, 0.2, 0.7]), looks=4, tolerance=0.03).max() > 5


@pytest.mark.parametrize(
    ("size", "prevalence"), [(1, [0.5, 0.3, 0.2]), (40, [0.51, 0.3, 0.19]), (1000, [0.49, 0.31, 0.2])]
)
def test_raises_no_alarm_inside_the_zone(population, size, prevalence):
    stream = Stream(population, seed=size)
    assert stream.first_alarm(None, (stream.bucket(prevalence, size) for _ in range(250))) is None


@pytest.mark.parametrize("seed", range(3))
def test_finds_a_change_of_a_fifth_within_four_thousand_samples(population, seed):
    stream = Stream(population, seed)
    calm = stream.gather(None, [stream.bucket() for _ in range(50)])
    assert calm.log_e_value < ALARM
    look = stream.first_alarm(calm, [stream.bucket(SHIFTED) for _ in range(8)])
    assert look is not None
    assert look * 500 <= 4000


def test_finds_a_change_in_buckets_of_one_sample(stream):
    assert stream.first_alarm(None, [stream.bucket([0.1, 0.2, 0.7], 1) for _ in range(400)]) is not None


def test_forgets_a_shift_that_has_vanished(stream):
    shifted = stream.gather(None, [stream.bucket([0.1, 0.2, 0.7]) for _ in range(100)])
    assert ALARM < shifted.log_e_value <= LARGEST_LOG_CAPITAL
    later = stream.gather(shifted, [stream.bucket() for _ in range(60)])
    assert later.log_e_value < ALARM


def test_looks_one_by_one_or_together_are_the_same(stream):
    buckets = [stream.bucket(size=size) for size in (1, 300, 2, 5000, 40)]
    together = stream.gather(None, buckets)
    one_by_one = None
    for bucket in buckets:
        one_by_one = stream.gather(one_by_one, [bucket])
    assert one_by_one == together
    assert (together.looks, together.samples) == (5, 5343)


def test_empty_buckets_are_no_looks(stream):
    bucket, empty = stream.bucket(), stream.bucket(size=0)
    assert stream.gather(None, [empty, bucket, empty]) == stream.gather(None, [bucket])
    nothing = stream.gather(None, [])
    assert (nothing.looks, nothing.samples, nothing.log_e_value) == (0, 0, 0.0)


def test_another_key_starts_anew(stream):
    before = stream.gather(None, [stream.bucket(SHIFTED) for _ in range(10)])
    bucket = stream.bucket()
    assert stream.gather(before, [bucket], key="other") == stream.gather(None, [bucket], key="other")
    assert stream.gather(before, [bucket], key="key").looks == 11
    assert stream.gather(before, [], key="other").log_e_value == 0


def test_a_state_with_other_bets_starts_anew(stream):
    """As another version of the product may have left it."""
    before = stream.gather(None, [stream.bucket()])
    other = replace(before, log_capitals=before.log_capitals[:-1])
    assert stream.gather(other, []).looks == 0


def test_survives_its_document_to_the_last_bit(stream):
    before = stream.gather(None, [stream.bucket(SHIFTED) for _ in range(5)])
    text = json.dumps(before.to_document(), allow_nan=False)
    read = ShiftEvidence.from_document(json.loads(text))
    assert read == before
    bucket = stream.bucket()
    assert stream.gather(read, [bucket]) == stream.gather(before, [bucket])


def test_its_size_does_not_grow(stream):
    def numbers(evidence):
        return sum(np.size(value) for value in evidence.to_document().values())

    few = stream.gather(None, [stream.bucket(size=5)])
    many = stream.gather(few, [stream.bucket(size=50)] * 300)
    assert numbers(few) == numbers(many)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", 3),
        ("key", None),
        *((name, value) for name in ("looks", "samples") for value in ("x", None, 1.5, True, -1, [1])),
        ("samples", 0),
        *(
            (name, value)
            for name in ("scatter", "scatter_looks")
            for value in ("x", "5", None, True, [5.0], -1.0, np.nan, np.inf, 10**400)
        ),
        ("scatter_looks", 0.0),
        *(
            (name, value)
            for name in ("log_capitals", "memory_sums", "memory_samples", "last_deviation", "last_variance")
            for value in ("x", None, 0.0, [], [0.0], [[[0.0]]], {"a": 1}, [[0.0], [0.0, 0.0]])
        ),
        ("log_capitals", [-1.0] * 30),
        ("log_capitals", [1e6] * 30),
        ("log_capitals", [0.0] * 3),
        ("memory_samples", [1.0, 1.0, -1.0]),
        ("memory_sums", [[np.nan] * 3] * 3),
        ("last_deviation", [np.nan] * 3),
        ("last_variance", [1.0, 1.0, -1e-9]),
        ("last_variance", [np.inf] * 3),
        ("unknown", 0),
    ],
)
def test_a_document_is_checked(stream, field, value):
    document = {**stream.gather(None, [stream.bucket()]).to_document(), field: value}
    with pytest.raises(InvalidInputError) as caught:
        ShiftEvidence.from_document(document)
    assert caught.value.field == field or (field, caught.value.field) in SHAPES


SHAPES = {("memory_samples", "memory_sums"), ("last_deviation", "memory_sums")}
"""Arrays whose shapes must agree: which one is wrong cannot be told."""


@pytest.mark.parametrize("tolerance", [-0.1, 1.5, np.nan])
def test_the_tolerance_is_a_share(stream, tolerance):
    stream.tolerance = tolerance
    with pytest.raises(InvalidInputError, match="tolerance"):
        stream.gather(None, [])


def test_buckets_of_other_classes_are_refused(stream):
    with pytest.raises(InvalidInputError, match="buckets"):
        stream.gather(None, [BucketScores(0, np.zeros(2), np.zeros((2, 2)))])


def without_tempering(monkeypatch):
    monkeypatch.setattr(module, "PRIOR_LOOKS", 1e12)


def test_patients_with_many_images_raise_no_alarm(stream, monkeypatch):
    """Twenty images of each patient, all of one class; taken as independent they do raise one."""
    without_tempering(monkeypatch)
    grouped, careless = [], []
    for _ in range(150):
        classes = stream.rng.choice(3, size=15, p=PREVALENCE)
        logits = stream.three.logits(np.repeat(classes, 20), stream.rng)
        grouped.append(bucket_scores(stream.head, logits, groups=np.repeat(np.arange(15), 20)))
        careless.append(bucket_scores(stream.head, logits))
    assert stream.first_alarm(None, grouped) is None
    assert stream.first_alarm(None, careless) is not None


def test_patients_show_a_shift_nevertheless(stream):
    def bucket():
        classes = stream.rng.choice(3, size=15, p=[0.1, 0.2, 0.7])
        logits = stream.three.logits(np.repeat(classes, 20), stream.rng)
        return bucket_scores(stream.head, logits, groups=np.repeat(np.arange(15), 20))

    assert stream.first_alarm(None, (bucket() for _ in range(60))) is not None


def test_the_memories_fade(stream):
    """Transcription of what the fields say, and what that is for: long after, nothing is left of a shift."""
    buckets = [stream.bucket(SHIFTED, 300), stream.bucket(size=2000), stream.bucket(size=50)]
    evidence = stream.gather(None, buckets)
    sums, samples = np.zeros((3, 3)), np.zeros(3)
    for bucket in buckets:
        fading = np.exp(-bucket.samples / np.array([1_000, 4_000, 16_000]))
        deviation = bucket.sums - bucket.samples * stream.reference.expectation
        sums = sums * fading[:, np.newaxis] + deviation
        samples = samples * fading + bucket.samples
    np.testing.assert_allclose(evidence.memory_sums, sums)
    np.testing.assert_allclose(evidence.memory_samples, samples)
    later = stream.gather(evidence, [stream.bucket(size=500) for _ in range(100)])
    np.testing.assert_allclose(later.memory_samples[0], 500 / (1 - np.exp(-0.5)))


def test_the_last_bucket_is_remembered_as_it_was(stream):
    buckets = [stream.bucket(), stream.bucket(SHIFTED, 400)]
    evidence = stream.gather(None, buckets)
    last = buckets[-1]
    np.testing.assert_allclose(evidence.last_deviation, last.mean - stream.reference.expectation)
    squares = np.diag(last.squares_around(stream.reference.expectation))
    np.testing.assert_allclose(evidence.last_variance, squares / 400**2)


def test_scatter_compares_successive_buckets(stream):
    """Transcription: 1 on average where nothing but chance is at work, and one jump counts for so much at most."""
    first, second = stream.bucket(), stream.bucket()
    before, after = stream.gather(None, [first]), stream.gather(None, [first, second])
    assert (before.scatter, before.scatter_looks) == (5, 5)
    expectation = stream.reference.expectation
    explained = sum(np.trace(one.squares_around(expectation)) / one.samples**2 for one in (first, second))
    excess = ((first.mean - second.mean) ** 2).sum() / explained
    assert after.scatter == pytest.approx(5 * 0.99 + excess)
    assert after.scatter_looks == pytest.approx(5 * 0.99 + 1)
    jump = stream.gather(None, [first, stream.bucket([0.0, 0.0, 1.0], 5000)])
    assert jump.scatter == pytest.approx(5 * 0.99 + 5)
    calm = stream.gather(None, [stream.bucket(size=100) for _ in range(300)])
    assert 0.8 < calm.scatter / calm.scatter_looks < 1.2


def test_nothing_piles_up_where_nothing_is_bet(stream):
    """Buckets that are exactly as expected give no reason for a learned bet, and no unit for one."""
    mean = stream.reference.expectation
    exact = BucketScores(10, 10 * mean, 10 * (stream.reference.spread + np.outer(mean, mean)))
    evidence = stream.gather(None, [exact] * 50)
    assert (evidence.log_capitals[-3:] == 0).all()
    assert (evidence.log_capitals[:-3] > 0).all()


@pytest.mark.parametrize("prevalence", [[1.0, 0.0], [1 - 1e-12, 1e-12]])
def test_a_head_that_excludes_a_class_gathers_nothing_from_rounding(population, prevalence):
    two, rng = population(2, 3.0), np.random.default_rng(0)
    calibration = two.draw([50, 50], rng)
    head = fit_head(calibration, 1 - np.eye(2), target_prevalence=prevalence)
    reference = ScoreReference.of(calibration, head)
    evidence = None
    for size in (500, 1, 20_000, *([500] * 40)):
        bucket = bucket_scores(head, two.window([1.0, 0.0], size, rng))
        evidence = update_evidence(evidence, reference, [bucket], key="", tolerance=0.01)
    assert evidence.log_e_value < 1
    assert evidence.dispersion < 2
    assert ShiftEvidence.from_document(evidence.to_document()) == evidence


@pytest.mark.parametrize(
    ("classes", "assumed", "returned", "most"),
    [(2, 1e-3, 0.1, 3000), (2, 1e-4, 0.1, 6000), (8, 1e-3, 0.1, 3000), (2, 1e-6, 0.3, 15_000)],
)
def test_finds_the_return_of_a_class_that_was_hardly_assumed(population, classes, assumed, returned, most):
    """With 2,000 calibration samples, and after quiet days without the class."""
    many = population(classes, 2.0 if classes == 2 else 3.0)
    first = np.eye(classes)[0]
    others = (1 - first) / (classes - 1)
    for seed in range(3):
        rng = np.random.default_rng([seed, classes])
        calibration = many.draw([2000 // classes] * classes, rng)
        prevalence = assumed * first + (1 - assumed) * others
        head = fit_head(calibration, 1 - np.eye(classes), target_prevalence=prevalence)
        reference = ScoreReference.of(calibration, head)
        evidence = None
        for _ in range(20):
            bucket = bucket_scores(head, many.window(others, 500, rng))
            evidence = update_evidence(evidence, reference, [bucket], key="", tolerance=0.01)
        assert evidence.log_e_value < ALARM
        seen = 0
        while evidence.log_e_value < ALARM:
            bucket = bucket_scores(head, many.window(returned * first + (1 - returned) * others, 500, rng))
            evidence = update_evidence(evidence, reference, [bucket], key="", tolerance=0.01)
            seen += 500
            assert seen <= most


def jitter(stream, looks, deviation):
    scale = 0.25 / deviation**2 - 1
    for _ in range(looks):
        yield stream.bucket(stream.rng.dirichlet(PREVALENCE * scale))


def test_a_prevalence_that_jitters_is_learned(stream, monkeypatch):
    calm = stream.gather(None, list(jitter(stream, 20, 0.02)))
    evidence = stream.gather(calm, list(jitter(stream, 60, 0.06)))
    assert evidence.dispersion > 3
    assert stream.first_alarm(evidence, jitter(stream, 150, 0.06)) is None
    # The positive control: with nothing learned, the same jitter raises an alarm.
    without_tempering(monkeypatch)
    assert stream.first_alarm(None, jitter(stream, 300, 0.06)) is not None


def test_numbering_the_classes_otherwise_changes_nothing(population):
    """Nor does a constant added to the logits of a sample."""
    stream = Stream(population)
    order = [2, 0, 1]
    head = stream.head
    turned = PostProcessingHead(
        head.temperature, head.bias[order], head.costs, head.assumed_prevalence[order], ("2", "0", "1")
    )
    reference = stream.reference
    other = ScoreReference(
        reference.expectation[order],
        reference.class_means[order][:, order],
        reference.spread[order][:, order],
        reference.error[order][:, order],
        reference.degrees_of_freedom[order],
    )
    rows = [stream.logits(SHIFTED, 300) for _ in range(6)]
    one = stream.gather(None, [bucket_scores(head, logits) for logits in rows])
    two = update_evidence(
        None, other, [bucket_scores(turned, logits[:, order] + 7) for logits in rows], key="", tolerance=0.01
    )
    assert one.log_e_value > 1
    assert two.log_e_value == pytest.approx(one.log_e_value, rel=1e-3)


def test_a_hundred_classes_some_hardly_assumed_and_enormous_buckets(population):
    many, rng = population(100, 6.0), np.random.default_rng(0)
    calibration = many.draw([3] * 99 + [1], rng)
    prevalence = np.full(100, 1e-6)
    prevalence[:50] = 1
    prevalence /= prevalence.sum()
    head = fit_head(calibration, 1 - np.eye(100), target_prevalence=prevalence)
    reference = ScoreReference.of(calibration, head)
    logits = many.window(prevalence, 400, rng)
    logits[0] = 1e4 * np.eye(100)[99]
    evidence = None
    for counts in (np.ones(400), np.full(400, 10**7), np.eye(400)[0]):
        bucket = bucket_scores(head, logits, counts=counts)
        evidence = update_evidence(evidence, reference, [bucket], key="", tolerance=0.01)
    assert np.isfinite(evidence.log_e_value)
    json.dumps(evidence.to_document(), allow_nan=False)


def test_a_class_with_one_calibration_sample_never_raises_an_alarm(population):
    stream = Stream(population, counts=(300, 300, 1))
    assert stream.first_alarm(None, (stream.bucket() for _ in range(100))) is None


def test_real_logits_keep_quiet_until_the_prevalence_shifts(shared_logits):
    task, rng = shared_logits("cifar10_resnet50"), np.random.default_rng(0)
    assumed = np.full(10, 0.1)
    head = fit_head(task.calibration, 1 - np.eye(10), target_prevalence=assumed)
    reference = ScoreReference.of(task.calibration, head)
    rows = [np.flatnonzero(task.deployment.labels == k) for k in range(10)]

    def first_alarm(prevalence, looks):
        evidence = None
        for look in range(1, looks + 1):
            drawn = [rng.choice(rows[k], size) for k, size in enumerate(rng.multinomial(500, prevalence))]
            bucket = bucket_scores(head, task.deployment.logits[np.concatenate(drawn)])
            evidence = update_evidence(evidence, reference, [bucket], key="", tolerance=0.01)
            if evidence.log_e_value >= ALARM:
                return look
        return None

    assert first_alarm(assumed, 100) is None
    look = first_alarm(assumed + 0.09 * (np.eye(10)[3] - np.eye(10)[5]), 8)
    assert look is not None
