"""Attacks that each have a service of their own, in the bounded form: no goal is missed."""

from pathlib import Path

import pytest

from tests.attacks.__main__ import ATTACKS, SETTINGS
from tests.attacks.attack import QUICK
from tests.attacks.target import running_target
from tests.attacks.test_attacks_on_one_service import ON_ONE_SERVICE


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in ON_ONE_SERVICE])
def test_no_goal_is_missed(name: str, tmp_path: Path) -> None:
    with running_target(tmp_path, **SETTINGS.get(name, {})) as target:
        outcome = ATTACKS[name](target, QUICK)
    assert outcome.missed == []
    assert outcome.figures
