"""Workers and threads for any number of cores."""

from itertools import product
from pathlib import Path

import pytest

from lifelong_core.configuration import serving_plan as module
from lifelong_core.configuration.serving_plan import ServingPlan, expects_gpu, plan_serving, serving_plan
from lifelong_core.configuration.settings import Settings

CORES = [*range(1, 66), 96, 128, 384]


def test_the_defaults_use_the_cores_and_no_more() -> None:
    for cores in CORES:
        plan = plan_serving(cores)
        assert 2 <= plan.workers <= 8, plan
        assert plan.workers * plan.threads <= max(2, cores), plan
        assert cores - plan.workers * plan.threads <= cores / 8, plan
        assert not plan.oversubscribes, plan
        assert not plan.leaves_half_idle, plan


def test_the_most_workers_are_chosen() -> None:
    plans = [plan_serving(cores) for cores in (1, 2, 3, 8, 9, 10, 47, 64)]
    expected = [(2, 1), (2, 1), (3, 1), (8, 1), (8, 1), (5, 2), (7, 6), (8, 8)]
    assert [(plan.workers, plan.threads) for plan in plans] == expected


def test_given_workers_share_the_cores() -> None:
    for cores, workers in product(CORES, (1, 2, 3, 7, 64)):
        plan = plan_serving(cores, workers=workers)
        assert plan.workers == workers
        assert plan.threads == max(1, cores // workers), plan
        assert plan.oversubscribes == (workers > max(2, cores)), plan
        assert plan.leaves_half_idle == (2 * workers * plan.threads <= cores), plan
        assert workers > cores or not plan.leaves_half_idle, plan


def test_workers_follow_from_given_threads() -> None:
    for cores, threads, workers in ((2, 1, 2), (8, 1, 8), (8, 2, 4), (8, 3, 2), (8, 8, 2), (64, 1, 8)):
        assert plan_serving(cores, threads=threads) == ServingPlan(cores, workers, threads)


def test_settings_that_do_not_fit_are_told() -> None:
    assert plan_serving(4, workers=3, threads=2).oversubscribes
    assert not plan_serving(4, workers=2, threads=2).oversubscribes
    assert plan_serving(4, workers=2, threads=1).leaves_half_idle
    assert not plan_serving(4, workers=3, threads=1).leaves_half_idle


def test_a_gpu_is_shared_by_few_workers() -> None:
    assert [plan_serving(cores, uses_gpu=True).workers for cores in (1, 3, 64)] == [2, 3, 4]
    # The threads run the graphs if the GPU cannot be started.
    assert [plan_serving(cores, uses_gpu=True).threads for cores in (1, 3, 64)] == [1, 1, 16]
    assert not plan_serving(64, threads=1, uses_gpu=True).leaves_half_idle
    given = plan_serving(64, workers=6, threads=3, uses_gpu=True)
    assert (given.workers, given.threads) == (6, 3)


def test_the_settings_and_the_machine_make_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_cores", lambda: 12)
    monkeypatch.setattr(module, "expects_gpu", lambda configured: "CUDAExecutionProvider" in configured)
    assert serving_plan(Settings()) == ServingPlan(12, 6, 2)
    assert serving_plan(Settings(workers=3)) == ServingPlan(12, 3, 4)
    assert serving_plan(Settings(intra_op_threads=4)) == ServingPlan(12, 3, 4)
    cuda = Settings(execution_providers=("CUDAExecutionProvider",))
    assert serving_plan(cuda) == ServingPlan(12, 4, 3, uses_gpu=True)


def test_a_gpu_is_expected_where_it_is_configured_or_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert expects_gpu(["CUDAExecutionProvider", "CPUExecutionProvider"], tmp_path)
    monkeypatch.setattr(module, "_has_cuda_provider", lambda: True)
    assert not expects_gpu([], tmp_path)
    (tmp_path / "nvidiactl").touch()
    assert expects_gpu([], tmp_path)
    assert not expects_gpu(["CPUExecutionProvider"], tmp_path)
    monkeypatch.setattr(module, "_has_cuda_provider", lambda: False)
    assert not expects_gpu([], tmp_path)
