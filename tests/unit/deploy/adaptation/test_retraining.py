"""Which looks count for the proposal of a retraining."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, count, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import LabeledLogits, PrevalenceEstimate, fit_head, quantifier
from lifelong_core.deploy.adaptation.retraining import (
    Look,
    MissedThreshold,
    class_performances,
    judge_retraining,
)
from lifelong_core.deploy.head_fitting import held_out_output
from lifelong_core.values.errors import InvalidInputError

NOW = datetime(2026, 3, 1, tzinfo=UTC)
AC = MissedThreshold("AC", None, 0.7, 0.65, 0.75, 0.8)
EC = MissedThreshold("EC", None, 0.9, 0.8, 1.0, 0.5)
REASON = "estimated_performance"


def look(
    number: int, missed: tuple[MissedThreshold, ...] | None = (AC,), *, span: int = 100, step: int = 100
):
    """The look that came `number` looks before the newest, `step` samples apart."""
    return Look(f"c{number}", NOW - timedelta(hours=number), number * step, span, missed)


def judged(*looks: Look, cycles: int = 3):
    return judge_retraining(REASON, looks, cycles)


@pytest.mark.parametrize(("looks", "expected"), [(2, False), (3, True), (4, True)])
def test_as_many_looks_as_asked_for_propose(looks: int, expected: bool) -> None:
    assert (judged(*map(look, range(looks))) is not None) is expected


def test_the_need_names_figures_looks_and_the_first_time() -> None:
    need = judged(look(0, (replace(AC, value=0.6),)), look(1), look(2), look(3))
    assert need is not None
    assert (need.reason, need.cycles, need.since) == (REASON, ("c2", "c1", "c0"), NOW - timedelta(hours=2))
    assert [figure.value for figure in need.missed] == [0.6]
    document = json.loads(json.dumps(need.to_document(), allow_nan=False))
    assert document["missed"][0]["threshold"] == 0.8
    assert "prevalence" in document["look_first"]


def test_looks_at_the_same_samples_count_once() -> None:
    sliding = [look(number, step=40) for number in range(20)]
    need = judged(*sliding)
    assert need is not None
    # 100 samples are 2.5 steps of 40.
    assert need.cycles == ("c6", "c3", "c0")
    assert judged(*sliding[:6]) is None


@pytest.mark.parametrize(("later", "counts"), [(99, False), (100, True)])
def test_windows_that_only_touch_share_no_sample(later: int, counts: bool) -> None:
    assert (judged(look(0), replace(look(1), later=later), cycles=2) is not None) is counts


def test_a_good_look_ends_the_search_even_if_it_overlaps() -> None:
    good = replace(look(1, ()), later=1)
    assert judged(look(0), good, look(1), look(2)) is None


def test_looks_that_cannot_tell_are_passed_over() -> None:
    unknown = look(1, None)
    assert judged(look(0), unknown, unknown, look(2), look(3)) is not None
    assert judged(unknown, look(1), look(2), look(3)) is None


def test_another_figure_does_not_stand_in_for_one() -> None:
    assert judged(look(0, (AC,)), look(1, (EC,)), look(2, (AC,))) is None
    need = judged(look(0, (EC, AC)), look(1, (AC,)), look(2, (AC, EC)))
    assert need is not None
    assert [figure.metric for figure in need.missed] == ["AC"]


def test_a_class_is_a_figure_of_its_own() -> None:
    first, second = (replace(AC, class_index=index) for index in (0, 1))
    assert judged(look(0, (first,)), look(1, (second,)), look(2, (first,))) is None


def test_no_more_looks_are_taken_than_needed() -> None:
    endless = map(look, count())
    assert judge_retraining(REASON, endless, 3) is not None
    assert next(endless).cycle == "c3"
    healthy = chain([look(0, ())], map(look, count(1)))
    assert judge_retraining(REASON, healthy, 3) is None
    assert next(healthy).cycle == "c1"


def test_no_cycle_is_no_number_of_cycles() -> None:
    with pytest.raises(InvalidInputError, match="cycles"):
        judged(look(0), cycles=0)


def test_an_end_of_an_interval_without_bound_is_left_out_of_the_document() -> None:
    need = judged(look(0, (replace(AC, low=float("-inf")),)), cycles=1)
    assert need is not None
    assert need.to_document()["missed"][0]["low"] is None


FIGURES = st.one_of(st.none(), st.lists(st.sampled_from([AC, EC]), unique=True).map(tuple))
HISTORIES = st.lists(st.tuples(FIGURES, st.integers(0, 150), st.integers(1, 200)), max_size=12)


def history(drawn: list[tuple[tuple[MissedThreshold, ...] | None, int, int]]) -> list[Look]:
    """Looks, newest first, from what each missed, how many samples came after it, and its span."""
    looks, later = list[Look](), 0
    for number, (missed, new, span) in enumerate(drawn):
        looks.append(Look(f"c{number}", NOW - timedelta(hours=number), later, span, missed))
        later += new
    return looks


@given(HISTORIES, st.integers(1, 5))
def test_whoever_asks_for_fewer_cycles_gets_a_proposal_too(drawn, cycles: int) -> None:
    looks = history(drawn)
    need = judge_retraining(REASON, looks, cycles + 1)
    if need is not None:
        fewer = judge_retraining(REASON, looks, cycles)
        assert fewer is not None
        assert {figure.key for figure in need.missed} <= {figure.key for figure in fewer.missed}


@given(HISTORIES, st.integers(1, 5), st.integers(0, 12))
def test_one_good_look_resets(drawn, cycles: int, place: int) -> None:
    looks = history(drawn)
    good = replace(look(0, ()), later=0)
    need = judge_retraining(REASON, [*looks[:place], good, *looks[place:]], cycles)
    assert need == judge_retraining(REASON, looks[:place], cycles)


@given(HISTORIES, st.integers(1, 5))
def test_older_looks_never_withdraw_a_proposal(drawn, cycles: int) -> None:
    looks = history(drawn)
    verdicts = [judge_retraining(REASON, looks[:size], cycles) is not None for size in range(len(looks) + 1)]
    assert verdicts == sorted(verdicts)


@given(HISTORIES, st.integers(1, 5))
def test_the_counted_looks_miss_and_share_no_sample(drawn, cycles: int) -> None:
    looks = history(drawn)
    need = judge_retraining(REASON, looks, cycles)
    if need is not None:
        by_name = {one.cycle: one for one in looks}
        counted = [by_name[name] for name in need.cycles]
        assert len(counted) == cycles
        assert all(need.missed[0] in (one.missed or ()) for one in counted)
        for older, newer in pairwise(counted):
            assert older.later - newer.later >= newer.span


COSTS = np.array([[0.0, 1.0, 0.3], [4.0, 0.0, 0.3]])


def estimate(prevalence, spread: float = 0.0, *, freedom: float = 100.0) -> PrevalenceEstimate:
    prevalence = np.asarray(prevalence, dtype=float)
    size = prevalence.size
    covariance = spread**2 * (np.eye(size) - np.full((size, size), 1 / size))
    return PrevalenceEstimate(
        prevalence,
        prevalence * 0,
        prevalence * 0 + 1,
        0.95,
        100,
        100.0,
        "x",
        covariance,
        np.full(size, freedom),
    )


@pytest.fixture(scope="module")
def fitted(population):
    calibration = population(2).draw((300, 200), np.random.default_rng(0))
    return calibration, fit_head(calibration, COSTS)


def test_the_value_weights_the_classes_by_the_estimated_prevalence(fitted) -> None:
    calibration, head = fitted
    decisions, labels = held_out_output(calibration, head).decisions, calibration.labels
    shares = [float(np.mean(decisions[labels == k] == k)) for k in (0, 1)]
    costs = [float(np.mean(COSTS[k, decisions[labels == k]])) for k in (0, 1)]
    of = estimate((0.9, 0.1))
    assert class_performances(calibration, head)["AC"].expected(of).value == pytest.approx(
        0.9 * shares[0] + 0.1 * shares[1]
    )
    assert class_performances(calibration, head)["EC"].expected(of).value == pytest.approx(
        0.9 * costs[0] + 0.1 * costs[1]
    )


def test_an_uncertain_prevalence_widens_the_interval(fitted) -> None:
    found = class_performances(*fitted)["EC"]
    sure, unsure = (found.expected(estimate((0.5, 0.5), spread)) for spread in (0.0, 0.2))
    assert sure.value == unsure.value
    assert unsure.low < sure.low < sure.value < sure.high < unsure.high


def test_the_interval_of_a_known_prevalence_has_the_binomial_width(fitted) -> None:
    calibration, head = fitted
    found = class_performances(calibration, head)["AC"]
    share, n = found.means[0], calibration.counts[0]
    expected = np.sqrt(share * (1 - share) / n)
    assert np.sqrt(found.covariance[0, 0]) == pytest.approx(expected, rel=0.05)


def test_few_samples_without_an_error_are_not_certain() -> None:
    logits = np.repeat([[5.0, 0.0], [0.0, 5.0]], 6, axis=0)
    calibration = LabeledLogits(logits, np.repeat([0, 1], 6))
    found = class_performances(calibration, fit_head(calibration, [[0, 1], [1, 0]]))["AC"].expected(
        estimate((0.5, 0.5))
    )
    assert found.value == 1
    assert found.low < 0.9


def test_samples_of_one_group_are_not_independent(fitted) -> None:
    calibration, head = fitted
    doubled = LabeledLogits(
        np.repeat(calibration.logits, 4, axis=0),
        np.repeat(calibration.labels, 4),
        np.repeat(np.arange(calibration.samples), 4),
    )
    alone, grouped = (class_performances(one, head)["AC"].covariance[0, 0] for one in (calibration, doubled))
    assert grouped == pytest.approx(alone, rel=0.2)
    assert class_performances(replace(doubled, groups=None), head)["AC"].covariance[0, 0] < alone / 2


def test_without_a_spread_of_the_estimate_there_is_no_figure(fitted) -> None:
    assert class_performances(*fitted)["EC"].expected(estimate((0.5, 0.5), freedom=0)) is None


def test_the_interval_covers_the_performance_in_the_population(population) -> None:
    """Over calibration sets and windows; the reference is the exact performance of the head, from many samples."""
    model, prevalence = population(2, 1.5), (0.8, 0.2)
    covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        calibration = model.draw((150, 150), rng)
        head = fit_head(calibration, [[0, 1], [2, 0]])
        of = quantifier("ACC").fit(calibration).estimate(model.window(prevalence, 400, rng))
        large = model.draw((16_000, 4_000), rng)
        true = float(np.mean(head.apply(large.logits).decisions == large.labels))
        found = class_performances(calibration, head)["AC"].expected(of)
        covered += found.low <= true <= found.high
    assert covered >= 36
