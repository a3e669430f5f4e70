"""Files of the workers' metrics: a full disk ends no process, and a replaced worker goes on counting."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_service.process import metric_files
from tests import tools

ON_A_FULL_DISK = """
import os, sys
from pathlib import Path
from lifelong_service.process.metric_files import share_metrics
share_metrics(1)
from prometheus_client import CollectorRegistry, Counter
from lifelong_service import metrics
from tests.faults.scenarios.disk import fill
counter = Counter("seen", "of the test", ["place"], registry=CollectorRegistry())
fill(filler := Path(sys.argv[1]))
for place in range(2000):
    counter.labels(place).inc()
shown = metrics.exposition().count(b"seen_total{")
filler.unlink()
for place in range(2000):
    counter.labels(place).inc()
print(0 < shown < 2000, metrics.exposition().count(b"} 2.0\\n"))
"""
ONE_WORKER = """
import sys
from lifelong_service.process.metric_files import share_metrics
share_metrics(int(sys.argv[1]))
from lifelong_service import metrics
metrics.SPOOLED_PREDICTIONS.inc(2)
metrics.QUEUE_LENGTH.set(metrics.QUEUE_LENGTH._value.get() + 5)
print(sorted(line for line in metrics.exposition().decode().splitlines()
       if line.startswith(("lifelong_spooled_predictions_total ", "lifelong_queue_length "))))
"""


def run(script: str, folder: Path, *arguments: str) -> str:
    environment = os.environ | {metric_files.FOLDER: str(folder)}
    done = subprocess.run(
        (sys.executable, "-c", script, *arguments),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def made_files(settings: Settings, monkeypatch: pytest.MonkeyPatch, memory: Path) -> Path:
    monkeypatch.setattr(metric_files, "_MEMORY", memory)
    monkeypatch.setattr(metric_files.atexit, "register", lambda *_, **__: None)
    monkeypatch.setenv(metric_files.FOLDER, "")
    metric_files.make_files(settings, 2)
    return Path(os.environ[metric_files.FOLDER])


def test_new_series_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools.need(tools.SMALL_DISKS)
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
    try:
        # Without memory for shared files, they are on the disk.
        folder = made_files(Settings(data_directory=disk), monkeypatch, tmp_path / "missing")
        assert folder.is_relative_to(disk)
        assert run(ON_A_FULL_DISK, folder, str(disk / "filler")) == "True 2000"
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_replaced_worker_goes_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made_files(Settings(data_directory=tmp_path), monkeypatch, tmp_path)
    files = {file.name for file in folder.iterdir()}
    printed = [run(ONE_WORKER, folder, worker) for worker in ("1", "2", "2")]
    # The gauge of a worker that has ended counts no more, and begins anew.
    assert printed == [
        f"['lifelong_queue_length 5.0', 'lifelong_spooled_predictions_total {total}.0']"
        for total in (2, 4, 6)
    ]
    assert {file.name for file in folder.iterdir()} == files


def test_services_with_one_data_directory_and_one_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(data_directory=tmp_path / "data")
    begin = (
        "import os, sys; from pathlib import Path; from lifelong_core.configuration.settings import Settings;"
    )
    killed = f"""{begin}
from lifelong_service.process import metric_files
metric_files._MEMORY = Path(sys.argv[1])
metric_files.make_files(Settings(data_directory=sys.argv[2]), 4)
os._exit(0)
"""
    run(killed, tmp_path, str(tmp_path), str(tmp_path / "other"))
    first = made_files(settings, monkeypatch, tmp_path)
    second = made_files(settings, monkeypatch, tmp_path)
    # The files of the killed service are removed, those of the running one are not.
    assert sorted(tmp_path.glob("lifelong-*")) == sorted([first, second])


@pytest.mark.parametrize("replaced", [False, True])
def test_a_worker_whose_folder_was_removed_serves_without_metrics(
    replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made_files(Settings(data_directory=tmp_path), monkeypatch, tmp_path)
    shutil.rmtree(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if replaced:  # as another user could
        folder.symlink_to(elsewhere)
    with pytest.raises(AssertionError, match=r"UnavailableError: the metrics are missing: .* was removed"):
        run(ONE_WORKER, folder, "1")
    assert not list(elsewhere.iterdir())
