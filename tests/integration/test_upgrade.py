"""An upgrade that is killed changes nothing, service and monitor say what to do, and the next upgrade completes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifelong_core.store import NewLabel, Scope, Store
from lifelong_core.store.schema import version
from tests import databases
from tests.unit.store.samples import add_serving_model, entry
from tests.unit.store.schema.test_migration import content_of

KILLED = """
import os, signal, sys
import sqlalchemy as sa
from lifelong.cli import main

place = sys.argv.pop(1)
left = [int(place) if place.isdecimal() else 0]

def count(*_):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def commit(*_):
    if place == "after":
        left[0] = 1
    if place == "before":
        os.kill(os.getpid(), signal.SIGKILL)

sa.event.listen(sa.Engine, "before_cursor_execute", count)
sa.event.listen(sa.Engine, "commit", commit)
main()
"""
"""`lifelong upgrade`, killed at a statement, or `before` or `after` its commit."""
NEXT_VERSION = """
from pathlib import Path
from lifelong_core.store.schema import version

version.SCRIPTS = Path({!r})
"""
"""`sitecustomize` of the processes of a later version, with another migration."""


OLDER = "0023"
"""A schema that no version upgrades."""


@pytest.fixture(params=databases.KINDS)
def url(
    request: pytest.FixtureRequest, tmp_path: Path, postgresql_server: databases.PostgreSQL
) -> Iterator[str]:
    """A database with something of everything."""
    with databases.database(request.param, tmp_path, postgresql_server) as url:
        fill(url, tmp_path)
        yield url


def fill(url: str, folder: Path) -> None:
    with Store.open(url, f"file://{folder / 'artifacts'}") as store:
        store.group_keys.create(folder / "data" / "group.key", actor="tests")
        model, _ = add_serving_model(store)
        logged = entry("request", predictions=2, model_id=model.id, environment="site-a")
        store.environments.ensure("site-a", limit=9)
        store.predictions.append([logged, entry(model_id=model.id)])
        store.labels.record([NewLabel(logged.predictions[0].id, 1, "pathology")], actor="lis")
        store.tokens.create("gateway", [Scope.PREDICT], actor="tests")


def run(folder: Path, url: str, *arguments: str, program: tuple[str, ...] = ("-m", "lifelong")):
    environment = os.environ | {
        "LIFELONG_DATA_DIRECTORY": str(folder / "data"),
        "LIFELONG_DATABASE_URL": url,
        "LIFELONG_ARTIFACTS_URL": f"file://{folder / 'artifacts'}",
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path[1:]]),
    }
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_killed_upgrade_is_completed_by_the_next_one(url: str, tmp_path: Path) -> None:
    present = version.revisions()[-1]
    held = content_of(url)
    scripts = databases.next_version(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(NEXT_VERSION.format(str(scripts)))
    for place in ("8", "before"):
        killed = run(tmp_path, url, place, "upgrade", program=("-c", KILLED))
        assert killed.returncode == -signal.SIGKILL, (place, killed.stdout, killed.stderr)
        assert content_of(url) == held
    for process in ("serve", "monitor"):
        refused = run(tmp_path, url, process)
        assert refused.returncode != 0
        assert f"older schema {present}" in refused.stderr
        assert "lifelong upgrade" in refused.stderr
        assert "Traceback" not in refused.stderr
    killed = run(tmp_path, url, "after", "upgrade", program=("-c", KILLED))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = run(tmp_path, url, "upgrade")
    assert done.returncode == 0, done.stderr
    assert databases.NEXT_REVISION in done.stdout
    again = content_of(url)
    assert [name for name in held if len(again[name]) < len(held[name])] == []
    assert {name for name in held if any(row not in again[name] for row in held[name])} == {"tasks"}
    assert ("note", "note of lesions") in again["tasks"][0]


@pytest.mark.parametrize("command", ["serve", "monitor", "upgrade", "doctor"])
def test_a_schema_that_cannot_be_upgraded_is_refused(tmp_path: Path, command: str) -> None:
    url = databases.sqlite_url(tmp_path, migrated=True)
    databases.set_revision(url, OLDER)
    refused = run(tmp_path, url, command)
    assert refused.returncode != 0
    said = refused.stdout if command == "doctor" else refused.stderr
    assert f"the database has the schema {OLDER}; this version expects {version.revisions()[-1]}" in said
    assert "lifelong export" in said
    assert "Traceback" not in refused.stderr
