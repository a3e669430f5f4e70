"""Every attack in its bounded form, on a real service: no goal is missed."""

from pathlib import Path

import pytest

from tests.attacks.__main__ import ATTACKS, SETTINGS
from tests.attacks.attack import QUICK
from tests.attacks.target import running_target


@pytest.mark.parametrize("name", ATTACKS)
def test_no_goal_is_missed(name: str, tmp_path: Path) -> None:
    with running_target(tmp_path, **SETTINGS.get(name, {})) as target:
        outcome = ATTACKS[name](target, QUICK)
    assert outcome.missed == []
    assert outcome.figures
