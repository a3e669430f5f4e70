"""Workers and threads for any number of cores."""

from pathlib import Path

import pytest

from lifelong_core.configuration import serving_plan as module
from lifelong_core.configuration.serving_plan import ServingPlan, expects_gpu, plan_serving, serving_plan
from lifelong_core.configuration.settings import Settings

CORES = [*range(1, 66), 96, 128, 384]


@pytest.mark.parametrize("cores", CORES)
def test_the_defaults_use_the_cores_and_no_more(cores: int) -> None:
    plan = plan_serving(cores)
    assert 2 <= plan.workers <= 8
    assert plan.workers * plan.threads <= max(2, cores)
    assert cores - plan.workers * plan.threads <= cores / 8
    assert not plan.oversubscribes
    assert not plan.leaves_half_idle


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        (1, (2, 1)),
        (2, (2, 1)),
        (3, (3, 1)),
        (8, (8, 1)),
        (9, (8, 1)),
        (10, (5, 2)),
        (47, (7, 6)),
        (64, (8, 8)),
    ],
)
def test_the_most_workers_are_chosen(cores: int, expected: tuple[int, int]) -> None:
    plan = plan_serving(cores)
    assert (plan.workers, plan.threads) == expected


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("workers", [1, 2, 3, 7, 64])
def test_given_workers_share_the_cores(cores: int, workers: int) -> None:
    plan = plan_serving(cores, workers=workers)
    assert plan.workers == workers
    assert plan.threads == max(1, cores // workers)
    assert plan.oversubscribes == (workers > max(2, cores))
    assert plan.leaves_half_idle == (2 * workers * plan.threads <= cores)
    assert workers > cores or not plan.leaves_half_idle


@pytest.mark.parametrize(
    ("cores", "threads", "workers"), [(2, 1, 2), (8, 1, 8), (8, 2, 4), (8, 3, 2), (8, 8, 2), (64, 1, 8)]
)
def test_workers_follow_from_given_threads(cores: int, threads: int, workers: int) -> None:
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
