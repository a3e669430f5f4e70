"""What a serving process loads, and what its bento asks for."""

import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]

SERVE_ONE = """
import sys, tempfile
from pathlib import Path
from lifelong_service.service import Lifelong
from lifelong_service.application import create_application
from tests.integration.installation import image, install
from tests.unit.service.in_process import InProcess
with tempfile.TemporaryDirectory() as folder:
    installation = install(Path(folder))
    client = InProcess(create_application(installation.settings))
    client.headers["Authorization"] = f"Bearer {installation.token}"
    assert client.post("/v1/predict", content=image()).status_code == 200
    client.close()
if "sklearn" in sys.argv:
    import sklearn
print("loaded:", *sorted({"torch", "sklearn", "timm", "lifelong_monitor", "lifelong_core.metrics"} & set(sys.modules)))
"""


def loaded(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SERVE_ONE, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("loaded:")[1].split()


def test_serving_loads_neither_torch_nor_sklearn() -> None:
    assert loaded() == []


def test_the_check_would_see_sklearn() -> None:
    assert loaded("sklearn") == ["sklearn"]


def test_the_bento_asks_for_what_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    bento = yaml.safe_load((ROOT / "bentofile.yaml").read_text())
    assert bento["python"]["packages"] == project["dependencies"] + extras["cpu"] + extras["postgres"]
