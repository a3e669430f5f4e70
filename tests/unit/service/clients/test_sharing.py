"""Bytes of bodies that a worker holds at once."""

import pytest

from lifelong_core.values.errors import UnavailableError
from lifelong_service.clients.sharing import BodyBudget


def test_bytes_are_held_until_the_request_ends() -> None:
    budget = BodyBudget(maximum_bytes=100)
    with budget.body("a", 60) as share:
        share.add(30)
        share.add(30)
        assert budget.held_bytes == 60
        with pytest.raises(UnavailableError), budget.body("a", 10):
            pass
    assert budget.held_bytes == 0
    with budget.body("a", 60) as share:
        share.add(60)


def test_one_token_holds_at_most_half_and_others_find_room() -> None:
    budget = BodyBudget(maximum_bytes=100)
    with budget.body("greedy", 0) as first, budget.body("greedy", 0) as second:
        first.add(30)
        second.add(20)
        with pytest.raises(UnavailableError):
            second.add(1)
        with budget.body("other", 40) as share:
            share.add(40)
    assert budget.held_bytes == 0


def test_what_is_only_announced_takes_no_room() -> None:
    budget = BodyBudget(maximum_bytes=100)
    with budget.body("slow", 100), budget.body("slow", 100), budget.body("a", 90) as share:
        share.add(90)


def test_a_body_above_the_limit_is_taken_when_it_is_alone() -> None:
    budget = BodyBudget(maximum_bytes=100)
    with budget.body("a", 150) as share:
        share.add(150)
