"""The benchmark of GPUs: where it cannot run, it says what is missing; how it takes times and names the ceiling."""

import importlib.util
import sys
from pathlib import Path

import pytest

from benchmarks import gpu
from benchmarks.gpu_graphs import PRECISIONS, QUICK
from benchmarks.gpu_runs import alternate, summary
from lifelong_core.values.errors import LifelongError
from tests.unit.service.graphs.gpu_double import CUDA, TENSORRT, install


def test_on_a_machine_without_cuda_it_stops_and_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    machine = install(monkeypatch)
    machine.missing = {"libcudnn.so.9"}
    monkeypatch.setattr(gpu, "check_wrk", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpu", "--quick"])
    assert gpu.main() == 2
    printed = capsys.readouterr()
    assert "libcudnn.so.9 is missing" in printed.err
    assert printed.out == ""


def test_graphs_of_an_earlier_run_need_no_packages_for_the_export(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("torch", "timm") else object()
    )
    with pytest.raises(LifelongError, match="packages are missing: torch, timm"):
        gpu._check_packages(tmp_path, QUICK)
    for one in QUICK:
        for precision in PRECISIONS:
            (tmp_path / f"{one.name}-{one.edge}-{precision}.onnx").touch()
    gpu._check_packages(tmp_path, QUICK)
    assert set(QUICK[0].files(tmp_path)) == set(PRECISIONS)


def test_tensorrt_is_measured_beside_cuda(monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch)
    assert gpu._providers(CUDA, with_tensorrt=False) == [[CUDA, "CPUExecutionProvider"]]
    assert gpu._providers(CUDA, with_tensorrt=True)[1][0] == TENSORRT


def test_arms_take_turns_after_their_warm_up():
    calls: list[str] = []
    arms = {name: lambda name=name: calls.append(name) for name in ("ours", "session")}
    latencies = alternate(arms, 0.001)
    turns = calls[6:]
    assert calls[:6] == ["ours"] * 3 + ["session"] * 3
    assert turns == ["ours", "session"] * len(latencies["ours"])
    assert len(latencies["ours"]) == len(latencies["session"]) >= 1


def test_throughput_is_that_of_the_mean_time():
    assert summary([0.1, 0.3], 4)["images_per_second"] == pytest.approx(20)


def test_the_slowest_part_is_named():
    row = {
        name: {"images_per_second": rate} for name, rate in (("kernel", 9e3), ("copy", 4e3), ("stack", 2e4))
    }
    assert "copy is the slowest (4,000 images/s)" in gpu._ceiling(row, 450)
    assert "20.0 cores" in gpu._ceiling(row, 450)
