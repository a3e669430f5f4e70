"""Modules that a serving process loads, and files of its bento and its wheel."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import yaml

from lifelong.monitoring_files import monitoring_files
from supply_chain.packages import CONTAINER

ROOT = Path(__file__).parents[4]

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
"""

USE_STORE = """
import sys
from datetime import UTC, datetime
from uuid import UUID
from lifelong_core.store import InterviewRecord
moment = datetime.now(UTC)
record = InterviewRecord(
    id=UUID(int=0), task=None, revision=1, document="{}",
    created_at=moment, created_by="ann", updated_at=moment, updated_by="ann",
)
"""

SHOW = """
watched = {"torch", "sklearn", "timm", "ray", "alembic"}
watched |= {"lifelong_monitor", "lifelong_core.design", "lifelong_core.metrics"}
print("loaded:", *sorted(watched & set(sys.modules)))
"""


def loaded(script: str) -> list[list[str]]:
    """The watched modules that are loaded at each `SHOW` of the script, and at its end."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script + SHOW],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [part.split() for part in done.stdout.split("loaded:")[1:]]


def test_serving_loads_nothing_that_it_does_not_need() -> None:
    assert loaded(SERVE_ONE + SHOW + "import sklearn") == [[], ["sklearn"]], "the check would see it"


def test_the_store_loads_the_design_loop_when_a_document_is_read_and_not_before() -> None:
    before, after = loaded(USE_STORE + SHOW + "assert record.interview.history == ()")
    assert before == []
    assert "lifelong_core.design" in after


def test_the_bento_installs_what_is_locked() -> None:
    bento = yaml.safe_load((ROOT / "bentofile.yaml").read_text())
    assert bento["python"] == {"lock_packages": False, "requirements_txt": "./service/requirements.txt"}
    assert CONTAINER["python_version"] == bento["docker"]["python_version"]


def test_the_bento_holds_the_files_of_the_console() -> None:
    patterns = yaml.safe_load((ROOT / "bentofile.yaml").read_text())["include"]
    package = ROOT / "service" / "lifelong_service"
    kinds = {
        path.suffix
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert kinds == {".py", ".css", ".jinja", ".js"}
    assert {f"service/**/*{kind}" for kind in kinds} <= set(patterns)


def test_the_wheel_holds_dashboards_rules_runbooks_and_the_page_of_previews(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert built.returncode == 0, built.stderr
    with ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        shipped = {name: wheel.read(name) for name in names if "grafana_files/" in name}
    wanted = {f"lifelong/grafana_files/{name}": content for name, content in monitoring_files().items()}
    assert shipped == wanted
    assert "lifelong/grafana_files/prometheus/rules.yml" in shipped
    assert {
        "lifelong_service/runbooks/LifelongErrorRate.md",
        "lifelong/grafana_preview/page.html.jinja",
    } <= names
