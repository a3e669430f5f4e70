"""The bento of a clean checkout serves from its own copy of the sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests import tools
from tests.integration.installation import image, install
from tests.integration.processes import running_service

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
        timeout=120,
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
        assert service.terminate() == 0
    assert (sources / "lifelong_core" / "store" / "migrations" / "env.py").is_file()
    assert not list(sources.rglob("test_*.py"))
