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
    for name in [name for name in sys.modules if name.startswith("alembic")]:
        del sys.modules[name]  # it made the tables; a service checks them without it
    client = InProcess(create_application(installation.settings))
    client.headers["Authorization"] = f"Bearer {installation.token}"
    client.checks_answers = False  # which loads what describes them
    assert client.post("/v1/predict", content=image()).status_code == 200
    client.close()
if "sklearn" in sys.argv:
    import sklearn
"""

USE_STORE = """
import sys
from datetime import UTC, datetime
from uuid import UUID
from lifelong_core.store import InterviewRecord
moment = datetime.now(UTC)
record = InterviewRecord(UUID(int=0), None, 1, "{}", moment, "ann", moment, "ann")
if "read" in sys.argv:
    assert record.interview.history == ()
"""

SHOW = """
watched = {"torch", "sklearn", "timm", "alembic", "lifelong_monitor", "lifelong_core.design", "lifelong_core.metrics"}
print("loaded:", *sorted(watched & set(sys.modules)))
"""


def loaded(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script + SHOW, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("loaded:")[1].split()


def test_serving_loads_nothing_that_it_does_not_need() -> None:
    assert loaded(SERVE_ONE) == []


def test_the_check_would_see_sklearn() -> None:
    assert loaded(SERVE_ONE, "sklearn") == ["sklearn"]


def test_the_store_loads_the_design_loop_when_a_document_is_read_and_not_before() -> None:
    assert loaded(USE_STORE) == []
    assert "lifelong_core.design" in loaded(USE_STORE, "read")


def test_the_bento_asks_for_what_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    bento = yaml.safe_load((ROOT / "bentofile.yaml").read_text())
    assert bento["python"]["packages"] == project["dependencies"] + extras["cpu"] + extras["postgres"]


def test_the_bento_holds_the_files_of_the_console() -> None:
    patterns = yaml.safe_load((ROOT / "bentofile.yaml").read_text())["include"]
    package = ROOT / "service" / "lifelong_service"
    kinds = {
        path.suffix
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert kinds == {".py", ".css", ".jinja"}
    assert {f"service/**/*{kind}" for kind in kinds} <= set(patterns)
