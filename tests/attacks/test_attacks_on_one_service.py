"""Attacks that leave the service as it was, one after the other, in the bounded form: no goal is missed."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.attacks.__main__ import ATTACKS
from tests.attacks.attack import QUICK
from tests.attacks.target import Target, running_target

ON_ONE_SERVICE = ("login_flood", "made_up_sessions", "half_open", "slow_bodies", "pipelining", "overload")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A service whose memory counts from its start, not from that of an attack."""
    with running_target(tmp_path_factory.mktemp("attacks")) as started:
        yield replace(started, memory_at_start=started.memory())


@pytest.mark.parametrize("name", ON_ONE_SERVICE)
def test_no_goal_is_missed(name: str, target: Target) -> None:
    outcome = ATTACKS[name](target, QUICK)
    assert outcome.missed == []
    assert outcome.figures
