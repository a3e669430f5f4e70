"""Attacks on a real service, and their effect on other clients.

    python -m tests.attacks [--json] [--quick] [--attack NAME ...] [--list]

Each attack runs on its own service on the loopback address. Exit status 1: a goal was missed.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import describe
from tests.attacks.attack import FULL, QUICK
from tests.attacks.graph_cost import LIMITS, graph_cost
from tests.attacks.half_open import half_open
from tests.attacks.hostile_graph import hostile_graph
from tests.attacks.image_stall import image_stall
from tests.attacks.json_bombs import json_bombs
from tests.attacks.login_flood import login_flood
from tests.attacks.made_up_sessions import made_up_sessions
from tests.attacks.overload import overload
from tests.attacks.pipelining import pipelining
from tests.attacks.refused_flood import refused_flood
from tests.attacks.slow_bodies import slow_bodies
from tests.attacks.target import running_target

ATTACKS = {
    attack.__name__: attack
    for attack in (
        image_stall,
        json_bombs,
        overload,
        half_open,
        slow_bodies,
        made_up_sessions,
        hostile_graph,
        graph_cost,
        refused_flood,
        login_flood,
        pipelining,
    )
}


SETTINGS = {"graph_cost": LIMITS}
"""Settings of the service of single attacks."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object of figures as the last line"
    )
    parser.add_argument("--quick", action="store_true", help="the bounded form of CI")
    parser.add_argument("--attack", action="append", choices=ATTACKS, help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="name all attacks and end")
    arguments = parser.parse_args()
    if not arguments.quick:
        os.environ["TEST_DEADLINES"] = "true"
    if arguments.list:
        for name, attack in ATTACKS.items():
            _say(f"{name}: {(attack.__doc__ or '').splitlines()[0]}")
        return 0
    sys.stdout.write(f"{describe()}\n")
    outcomes = {}
    for name in arguments.attack or ATTACKS:
        settings = SETTINGS.get(name, {})
        with tempfile.TemporaryDirectory() as folder, running_target(Path(folder), **settings) as target:
            outcome = ATTACKS[name](target, QUICK if arguments.quick else FULL)
        outcomes[name] = {"figures": outcome.figures, "missed": outcome.missed}
        _say(f"\n{name}")
        for figure, value in outcome.figures.items():
            _say(f"  {figure:30} {value:10.4g}")
        for missed in outcome.missed:
            _say(f"  MISSED: {missed}")
    if arguments.json:
        _say(json.dumps(outcomes))
    return int(any(outcome["missed"] for outcome in outcomes.values()))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
