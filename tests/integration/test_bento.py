"""The bento of a clean checkout serves, and runs every command, from its own copy of the sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tests import tools
from tests.integration.installation import Installation, image, install
from tests.integration.monitors import running_monitor
from tests.integration.processes import (
    PATIENCE_SECONDS,
    eventually,
    running_service,
    sockets_of,
    variables_of,
)

ROOT = Path(__file__).parents[2]


def checkout(folder: Path) -> Path:
    """A copy of what git tracks or would track, and nothing that was built."""
    listed = subprocess.run(
        [tools.program(tools.GIT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def python_path(sources: Path) -> str:
    """As bentofile.yaml sets it in a container, where the bento has another place."""
    environment = {
        one["name"]: one["value"] for one in yaml.safe_load((ROOT / "bentofile.yaml").read_text())["envs"]
    }
    return environment["PYTHONPATH"].replace("/home/bentoml/bento/src", str(sources))


def check_command_line(sources: Path, installation: Installation, folder: Path) -> None:
    """Every command runs from the sources of the bento, and the monitor makes its cycles."""
    # In a folder without the packages, so that only the path of the bento leads to them.
    path = {"PYTHONPATH": python_path(sources)}
    variables = variables_of({"data_directory": installation.settings.data_directory}) | path

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def lifelong(*arguments: str) -> str:
        return run("-m", "lifelong", *arguments)

    packages = ("lifelong", "lifelong_core", "lifelong_monitor", "lifelong_service")
    show = f"import {', '.join(packages)}; print({', '.join(f'{name}.__file__' for name in packages)}, sep='\\n')"
    assert all(Path(file).is_relative_to(sources) for file in run("-c", show).splitlines())
    assert "lifelong, version" in lifelong("--version")
    assert "tokens stay as they are" in lifelong("init")
    assert "linear@1" in lifelong("models", "list")
    assert "rules.yml" in lifelong("grafana", "export", str(folder / "monitoring"))
    command = (sys.executable, "-m", "lifelong", "monitor")
    data = installation.settings.data_directory
    usual = {"data_directory": data, "cycle_interval_seconds": None}
    with running_monitor(folder, command=command, environment=path, **usual) as monitor:
        seen = "lifelong_population_first_seen_timestamp_seconds{"
        eventually(lambda: seen in monitor.metrics(), "the monitor to see the population")
        doctor = subprocess.run(
            [sys.executable, "-m", "lifelong", "doctor"],
            cwd=folder,
            env=variables | {"LIFELONG_MONITOR_PORT": str(monitor.port)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert doctor.returncode in (0, 1), doctor.stdout + doctor.stderr
        assert "ok       monitor" in doctor.stdout
        assert monitor.terminate() == 0


def test_the_bento_builds_and_serves(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        tools.give_up(tools.GIT, f"{ROOT} is no clone")
    home = {"BENTOML_HOME": str(tmp_path / "home"), "BENTOML_DO_NOT_TRACK": "True"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")}
    built = subprocess.run(
        [sys.executable, "-m", "bentoml", "build", "--output", "tag"],
        cwd=checkout(tmp_path / "checkout"),
        env=kept | home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert built.returncode == 0, built.stderr
    tag = built.stdout.strip().removeprefix("__tag__:")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    installation = install(tmp_path)
    with running_service(
        elsewhere,
        installation.token,
        command=(sys.executable, "-m", "bentoml", "serve", tag),
        environment=home,
        data_directory=installation.settings.data_directory,
    ) as service:
        service.wait_until_ready()
        assert service.send("POST", "/v1/predict", image()).status == 200
        sources = next((tmp_path / "home" / "bentos").glob("lifelong/*/src"))
        assert {worker.cwd() for worker in service.workers()} == {str(sources)}
        assert sockets_of(service) == {f"127.0.0.1:{service.port}"}
        check_command_line(sources, installation, elsewhere)
        assert service.terminate() == 0
    assert (sources / "lifelong_core" / "store" / "schema" / "migrations" / "env.py").is_file()
    assert not list(sources.rglob("test_*.py"))
    requirements = (sources.parent / "env" / "python" / "requirements.txt").read_text()
    assert set((ROOT / "service" / "requirements.txt").read_text().splitlines()[1:]) <= set(
        requirements.splitlines()
    )
