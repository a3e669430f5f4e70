"""The benchmark of serving: how it reads wrk and profiles, forms ratios and compares servers; what it needs."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.serving import __main__ as serving
from benchmarks.serving.goals import GOALS, Goal, beside_goals
from benchmarks.serving.layers import OTHER, layer_of, shares_by_layer
from benchmarks.serving.rounds import in_turns, medians, ratios
from benchmarks.serving.servers import TOLERANCE, check_equal
from benchmarks.serving.wrk import prepared, read_load
from lifelong_core.values.errors import LifelongError

OUTPUT = """\
Running 2s test @ http://127.0.0.1:3000
  1 threads and 16 connections

FIGURES {"requests":1010,"us":2000000,"p50":9500,"p99":20000,"mean":10000,"maximum":31500,"refused":10,"faults":1}
"""
STACKS = """\
thread (1): MainThread;run (asyncio/runners.py:118);guarded (lifelong_service/guard/route.py:193) 30
thread (1): MainThread;run (asyncio/runners.py:118);write (lifelong_service/transport/joined_writes.py:20) 20
(2): run (threading.py:9);f (lifelong_service/prediction/a.py:9);g (lifelong_core/deploy/head.py:4);h (numpy/a.py:1) 40
thread (3): sampler;run (threading.py:982) 10
"""


@pytest.mark.parametrize(("arguments", "missing"), [([], "wrk"), (["--profile", "folder"], "py-spy")])
def test_a_missing_program_ends_it_with_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], missing: str
):
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/usr/bin/{name}")
    monkeypatch.setattr(sys, "argv", ["serving", *arguments])
    assert serving.main() == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"{missing} is missing")
    assert printed.out == ""


def test_refused_requests_are_not_counted_as_answered():
    load = read_load(OUTPUT)
    assert (load.answered, load.refused, load.faults) == (1000, 10, 1)
    assert load.per_second == 500
    assert (load.p50_ms, load.p99_ms, load.maximum_ms) == (9.5, 20, 31.5)
    assert load.closed_loop_per_second(16) == 500
    assert replace(load, refused=0).closed_loop_per_second(16) == pytest.approx(16 / (load.mean_ms / 1e3))


def test_output_without_figures_or_answers_is_an_error():
    with pytest.raises(LifelongError, match="unable to connect"):
        read_load("", "unable to connect")
    with pytest.raises(LifelongError, match="no request was answered"):
        read_load(OUTPUT.replace('"requests":1010', '"requests":10'))


def test_the_script_of_wrk_names_path_headers_and_bodies():
    with prepared(3000, "/v1/predict", {"Content-Type": 'a "quoted" type'}, [b"one", b"two"]) as requests:
        command = requests.command(16, 1.2)
        script = Path(command[command.index("-s") + 1])
        assert command[1:4] == ["-t1", "-c16", "-d2s"]
        lines = script.read_text().splitlines()
        assert lines[0] == "local COUNT = 2"
        assert lines[1] == f'local FOLDER = "{script.parent}"'
        assert lines[2:4] == [
            'local PATH = "/v1/predict"',
            'local HEADERS = {["Content-Type"] = "a \\"quoted\\" type"}',
        ]
        assert [(script.parent / name).read_bytes() for name in "12"] == [b"one", b"two"]
    assert not script.exists()


def test_every_other_round_goes_backwards():
    calls: list[str] = []

    def arm(name: str) -> dict[str, float]:
        calls.append(name)
        return {"per_second": len(calls)}

    found = in_turns({name: lambda name=name: arm(name) for name in "ab"}, 2)
    assert calls == ["a", "b", "b", "a"]
    assert found == {"a": [{"per_second": 1}, {"per_second": 4}], "b": [{"per_second": 2}, {"per_second": 3}]}


def test_ratios_are_those_of_the_same_round():
    ours = [{"per_second": value} for value in (1.0, 10.0, 100.0)]
    peer = [{"per_second": value} for value in (2.0, 10.0, 400.0)]
    assert ratios(ours, peer, "per_second") == [0.5, 0.25, 1.0]


def test_rare_events_are_not_hidden_by_the_median():
    rounds = [{"p50_ms": 1.0, "maximum_ms": 5.0, "refused": 0.0}] * 2
    rounds.append({"p50_ms": 9.0, "maximum_ms": 80.0, "refused": 3.0})
    assert medians(rounds) == {"p50_ms": 1.0, "maximum_ms": 80.0, "refused": 3.0}


def test_servers_that_answer_alike_pass():
    ours = [(0, [0.8, 0.2]), (1, [0.3, 0.7])]
    peer = [(0, [0.8, 0.2]), (1, [0.3 + TOLERANCE / 2, 0.7 - TOLERANCE / 2])]
    assert check_equal({"ours": ours, "peer": peer}) == pytest.approx(TOLERANCE / 2)


@pytest.mark.parametrize(
    ("peer", "message"),
    [
        ([(1, [0.3, 0.7]), (0, [0.8, 0.2])], "decide differently"),
        ([(0, [0.8 - 2 * TOLERANCE, 0.2]), (1, [0.3, 0.7])], "differ by 2.0e-05"),
        ([(0, [float("nan"), 0.2]), (1, [0.3, 0.7])], "differ by nan"),
    ],
)
def test_servers_that_answer_differently_are_an_error(peer: list[tuple[int, list[float]]], message: str):
    with pytest.raises(LifelongError, match=message):
        check_equal({"ours": [(0, [0.8, 0.2]), (1, [0.3, 0.7])], "peer": peer})


def test_images_with_one_decision_are_no_comparison():
    same = [(0, [0.8, 0.2])] * 2
    with pytest.raises(LifelongError, match="same decision"):
        check_equal({"ours": same, "peer": same})


def test_a_sample_belongs_to_its_innermost_frame_with_a_layer():
    shares = shares_by_layer(STACKS)
    assert shares == {"head": 0.4, "guard": 0.3, "HTTP server": 0.2, OTHER: 0.1}
    assert list(shares) == ["head", "guard", "HTTP server", OTHER]


def test_the_longest_prefix_decides():
    assert layer_of("append (lifelong_service/prediction/prediction_log.py:9)") == "log"
    assert layer_of("submit (lifelong_service/prediction/micro_batcher.py:9)") == "batcher"


def test_goals_stand_beside_the_figures_of_measured_cases():
    goals = (
        Goal("rate", ("overhead", "16", 0), 3.5),
        Goal("longest", ("overhead", "longest"), 50, is_least=False),
        Goal("start", ("start", "seconds"), 3, is_least=False),
    )
    rows = beside_goals({"overhead": {"16": [3.6, 1.0], "longest": 51.0}}, goals)
    assert [(row["limit"], row["figure"], row["is_reached"]) for row in rows] == [
        ("at least 3.5", 3.6, True),
        ("at most 50", 51.0, False),
    ]


def test_every_goal_belongs_to_a_case():
    assert {goal.path[0] for goal in GOALS} == set(serving.CASES)
