"""Files of service, monitor, jobs and command line are closed to other users, whatever the umask."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.databases import locked
from tests.integration.installation import image, install
from tests.integration.monitors import Monitor, running_monitor
from tests.integration.processes import Service, eventually, running_service


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_paths(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):  # of the spool, delivered meanwhile
            if path.stat().st_mode & 0o077:
                found[str(path.relative_to(folder))] = f"{path.stat().st_mode:o}"
    return found


def lifelong(data: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lifelong", *arguments],
        cwd=data.parent,
        env=os.environ | {"LIFELONG_DATA_DIRECTORY": str(data)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def has_ticked(monitor: Monitor) -> bool:
    lines = monitor.metrics().splitlines()
    return any(line.startswith("lifelong_cycles_total{") and not line.endswith(" 0.0") for line in lines)


def predict(service: Service, request_id: str) -> int:
    path = f"/v1/predict?environment=clinic&group=p1&request_id={request_id}"
    return service.send("POST", path, image(), Content_Type="image/png").status


def test_only_their_owner_may_use_the_files(no_umask: None, tmp_path: Path) -> None:
    installation = install(tmp_path)
    data = installation.settings.data_directory
    lifelong(data, "init")
    lifelong(data, "rotate-group-key")
    with running_service(tmp_path, installation.token) as service:
        service.wait_for_workers()
        assert [predict(service, str(number)) for number in range(20)] == [200] * 20
        # Its output goes elsewhere: the files of whoever starts it are not its own.
        with running_monitor(tmp_path) as monitor:
            eventually(lambda: has_ticked(monitor), "a cycle")
        with locked(data / "lifelong.db"):
            assert predict(service, "outage") == 200
            eventually(lambda: service.send("GET", "/readyz").body["spool"]["predictions"], "the spool")
            assert open_paths(data) == {}
    lifelong(data, "export", "clinic", "--output", str(data / "log.csv"))
    found = {path.name for path in data.rglob("*")}
    assert {
        "lifelong.db",
        "audit.anchor",
        "group.key",
        "registry.json",
        "spool",
        "recent_requests.db",
        "bentoml",
    } <= found
    assert open_paths(data) == {}
