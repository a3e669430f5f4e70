"""The soak of serving: its shortened form, and positive controls of its checks and of its load."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lifelong_service.decoding.decoder import SMALL_PIXELS
from lifelong_service.decoding.header import is_cheap, read_header
from tests.faults import leaking, resources
from tests.faults.mixed_load import MIXED_PERIOD, WAYS_TO_LEAVE, MixedLoad
from tests.faults.report import render
from tests.faults.resources import Rest, Watch
from tests.faults.scenarios.soak import MOST_GROWTH
from tests.faults.world import World
from tests.integration.processes import eventually
from tests.soak.memory import Sample

LEAKING_SECONDS = 8.0


@pytest.fixture(scope="module")
def outcome() -> dict[str, Any]:
    """Outcome of the shortened soak, half a minute of load on PostgreSQL, run by its command."""
    command = (sys.executable, "-m", "tests.faults", "--quick", "--json")
    command += ("--scenario=serving_soak", "--database=postgresql")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    (found,) = json.loads(done.stdout.splitlines()[-1])["outcomes"]
    return found


def test_nothing_is_lost_and_nothing_grows(outcome: dict[str, Any]) -> None:
    assert outcome["violations"] == []
    assert outcome["failed"] == outcome["lost"] == outcome["duplicated"] == 0
    assert outcome["answered"] > MIXED_PERIOD
    assert outcome["faults"] == 3


def test_the_report_shows_each_process(outcome: dict[str, Any]) -> None:
    text = render([outcome])
    assert "## Soak of serving" in text
    assert all(f"| {name} |" in text for name in ("parent", "worker 1", "worker 2"))
    assert "capacity" in text


def test_leaks_of_a_real_service_and_a_worker_that_ends_are_found(tmp_path: Path) -> None:
    with World("sqlite", tmp_path, None) as world:
        world.start_service(command=leaking.SERVICE)
        with Watch(world.service, interval=0.2) as watch:
            first = watch.rest()
            time.sleep(LEAKING_SECONDS)
            last = watch.rest()
            until = watch.seconds
            assert watch.ended == []
            world.service.workers()[0].kill()
            eventually(lambda: watch.ended, "the end of a worker to be seen")
        (ended,) = resources.ended_processes(watch.ended)
        assert ended.startswith("worker")
        grown = resources.grown_memory(watch.memory, after=0, until=until, most=MOST_GROWTH)
        assert [one.split(" has")[0] for one in grown] == ["the memory of worker 1", "the memory of worker 2"]
        held = resources.grown_holdings(first, last)
        for name in ("worker 1", "worker 2"):
            for kind in ("descriptors", "threads"):
                assert any(one.startswith(name) and kind in one for one in held)
        assert not any(one.startswith("parent") for one in held)


def test_growth_within_the_limits_passes() -> None:
    memory = {"worker 1": [Sample(float(second), 300, 100 + 0.04 * second) for second in range(100)]}
    assert resources.grown_memory(memory, after=0, until=100, most=MOST_GROWTH) == []
    assert len(resources.grown_memory(memory, after=0, until=100, most=0.02)) == 1


@pytest.mark.parametrize(
    ("last", "word"),
    [
        (Rest(39, 16, 0), "descriptors"),
        (Rest(30, 21, 0), "threads"),
        (Rest(30, 16, 1), "children"),
        (Rest(38, 20, 0), None),
    ],
)
def test_what_is_held_beyond_the_limits_is_found(last: Rest, word: str | None) -> None:
    found = resources.grown_holdings({"worker 1": Rest(30, 16, 0)}, {"worker 1": last})
    assert (found == []) if word is None else (word in found[0])


def test_images_take_every_way_to_their_pixels() -> None:
    load = MixedLoad(0, "token", "ward", rate=None, threads=1)
    ways = dict[str, set[tuple[bool, bool]]]()
    for number in range(0, MIXED_PERIOD, 4):
        request = load._request(number)
        header = read_header(request.body)
        way = is_cheap(header, len(request.body)), header.pixels > SMALL_PIXELS
        ways.setdefault(load.image_kind(number), set()).add(way)
    assert ways == {"small": {(True, False)}, "large": {(True, True)}, "costly": {(False, False)}}


def test_clients_leave_in_every_way_and_get_the_same_answer_later(tmp_path: Path) -> None:
    with World("sqlite", tmp_path, None) as world:
        world.start_service()
        load = MixedLoad(world.port, world.installation.token, "ward", rate=None, threads=8)
        with load:
            deadline = time.monotonic() + 60
            while len(load.answers) < MIXED_PERIOD and time.monotonic() < deadline:
                time.sleep(0.1)
        assert load.failures == []
        assert set(load.disconnected) == set(WAYS_TO_LEAVE)
        assert {answer.is_image for answer in load.answers} == {True, False}
        logged = {row.id for row in world.read_log(None)}
        assert logged == {one for answer in load.answers for one in answer.prediction_ids}
