"""`lifelong demo` as a user runs it: real processes, real images, real figures."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests import tools

START_SECONDS = 240
PYTHON = os.environ.get("USER_PYTHON", sys.executable)
"""Of an installation without what only developers need, where there is one."""


def start_demo(folder, *arguments):
    return subprocess.Popen(
        [PYTHON, "-m", "lifelong", "demo", *arguments],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder), "PYTHONFAULTHANDLER": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(folder):
    """Living processes whose working directory or environment belongs to this demo's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in process.environ().get("LIFELONG_DATA_DIRECTORY", ""):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder in which a demo has run, and its figures."""
    folder = tmp_path_factory.mktemp("demo")
    process = start_demo(folder, "--json", "--seed", "1")
    output, errors = process.communicate(timeout=590)
    assert process.returncode == 0, errors
    return folder, json.loads(output.splitlines()[-1])


def test_the_estimate_is_right_and_the_decisions_get_better(demo):
    _, figures = demo
    assert figures["prevalence_error_l1"] < 0.15
    assert figures["expected_cost_after"] <= 0.75 * figures["expected_cost_before"]
    assert figures["accuracy_after"] >= figures["accuracy_before"] + 0.02


def test_the_first_cycle_finds_the_change_in_the_middle_of_its_window(demo):
    _, figures = demo
    true, found = figures["images_before_change"], figures["images_before_change_found"]
    assert abs(found - true) <= 50
    assert figures["images_before_change_low"] <= found <= figures["images_before_change_high"]
    assert figures["prevalence_error_l1"] < 0.5 * figures["prevalence_error_l1_whole_window"]


def test_decisions_between_the_change_and_the_swap_are_compared(demo):
    _, figures = demo
    assert 0 < figures["affected_decisions"] < figures["compared_decisions"]
    assert abs(figures["compared_decisions"] - figures["compared_images"]) <= 50


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_accuracy_is_estimated_without_labels_and_realised_with_late_ones(demo, when):
    _, figures = demo
    true, estimate = figures[f"accuracy_{when}"], figures[f"estimated_accuracy_{when}"]
    assert estimate["low"] <= estimate["value"] <= estimate["high"]
    assert estimate["low"] - 0.03 <= true <= estimate["high"] + 0.03
    assert figures[f"realised_accuracy_{when}"] == pytest.approx(true, abs=0.1)


def test_labels_of_a_fifth_of_the_predictions_are_sent(demo):
    _, figures = demo
    assert 0.15 < figures["labelled"] / figures["answered"] < 0.25


def test_no_swap_happens_before_the_shift(demo):
    _, figures = demo
    assert figures["cycles_before_shift"] >= 2
    assert figures["swaps_before_shift"] == 0
    assert figures["swaps"] >= 1
    assert figures["head_after"] != figures["head_before"]


def test_every_answer_is_in_the_log_and_comes_from_one_head(demo):
    _, figures = demo
    assert figures["answered"] == figures["logged"] >= 800 + 1500
    assert figures["mixed_heads"] == 0


def test_it_ends_in_time_and_leaves_a_plot_but_no_process(demo):
    folder, figures = demo
    assert figures["seconds_in_all"] < 180 or not tools.has_deadlines()
    assert len(list(folder.glob("lifelong-demo-*/demo.png"))) == 1
    assert processes_of(folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process(tmp_path, number):
    with start_demo(tmp_path) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while len(processes_of(tmp_path)) < 3 and time.monotonic() < deadline:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.1)
            assert len(processes_of(tmp_path)) >= 3, "service and monitor have not started"
            process.send_signal(number)
            assert ended(process) != 0
            assert processes_of(tmp_path) == []
        finally:
            process.kill()
            for left in processes_of(tmp_path):
                left.kill()


def ended(process):
    """The exit status; if it does not end, where it is."""
    try:
        process.communicate(timeout=150)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        pytest.fail(process.communicate()[1])
    return process.returncode
