"""Which looks count for the proposal of a retraining."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy.adaptation.retraining import (
    Look,
    MissedThreshold,
    judge_retraining,
)
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
