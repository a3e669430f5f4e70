"""An upgrade that is killed changes nothing, service and monitor say what to do, and the next upgrade completes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifelong_core.store import NewLabel, Scope, Store
from lifelong_core.store.engine.database import Database
from lifelong_core.store.schema import migration, version
from tests import databases
from tests.unit.store.samples import add_serving_model, entry, read_all
from tests.unit.store.schema.test_migration import content_of, differences

OLD = "0003"
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


@pytest.fixture(params=databases.KINDS)
def old_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with the schema of an old version and something of everything."""
    if request.param == "sqlite":
        yield databases.sqlite_url(tmp_path, migrated=True)
    else:
        with databases.PostgreSQL() as server:
            yield server.create(migrated=True)


def run(folder: Path, url: str, *arguments: str, program: tuple[str, ...] = ("-m", "lifelong")):
    environment = os.environ | {
        "LIFELONG_DATA_DIRECTORY": str(folder / "data"),
        "LIFELONG_DATABASE_URL": url,
        "LIFELONG_ARTIFACTS_URL": f"file://{folder / 'artifacts'}",
    }
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_killed_upgrade_is_completed_by_the_next_one(old_url: str, tmp_path: Path) -> None:
    artifacts = f"file://{tmp_path / 'artifacts'}"
    with Store.open(old_url, artifacts) as store:
        store.group_keys.create(tmp_path / "data" / "group.key", actor="tests")
        model, _ = add_serving_model(store)
        logged = entry("request", predictions=2, model_id=model.id, environment="site-a")
        store.environments.ensure("site-a", limit=9)
        store.predictions.append([logged, entry(model_id=model.id)])
        store.labels.record([NewLabel(logged.predictions[0].id, 1, "pathology")], actor="lis")
        store.tokens.create("gateway", [Scope.PREDICT], actor="tests")
    database = Database(old_url)
    migration.downgrade(database, OLD)
    held = content_of(old_url)
    for place in ("8", "50", "before"):
        killed = run(tmp_path, old_url, place, "upgrade", program=("-c", KILLED))
        assert killed.returncode == -signal.SIGKILL, (place, killed.stdout, killed.stderr)
        assert content_of(old_url) == held
    for process in ("serve", "monitor"):
        refused = run(tmp_path, old_url, process)
        assert refused.returncode != 0
        assert f"older schema {OLD}" in refused.stderr
        assert "lifelong upgrade" in refused.stderr
        assert "Traceback" not in refused.stderr
    killed = run(tmp_path, old_url, "after", "upgrade", program=("-c", KILLED))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = run(tmp_path, old_url, "upgrade")
    assert done.returncode == 0, done.stderr
    assert differences(old_url) == []
    with Store.open(old_url, artifacts) as store:
        assert len(list(read_all(store))) == 3
        (label,) = store.labels.history(logged.predictions[0].id)
        assert (label.label, label.source) == (1, "pathology")
        assert store.audit.verify().faults == ()
        assert store.group_keys.known_digests()
    migration.downgrade(database, OLD)
    database.close()
    again = content_of(old_url)
    lost = [name for name, rows in held.items() if any(row not in again[name] for row in rows)]
    assert set(lost) <= {"registry_revision"}
    assert version.revisions()[-1] in done.stdout
