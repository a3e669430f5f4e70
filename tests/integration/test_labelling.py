"""A labelling plan is completed while monitors, workers and imports are killed: no label is lost or doubled."""

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import numpy as np
import psutil

from lifelong_core.store import LogEntry, Prediction, Store, new_prediction_id
from lifelong_monitor.realised.labelling_plan import LabellingEstimates
from tests.integration.installation import CLASS_NAMES, Installation, install
from tests.integration.processes import Service, eventually, running_service
from tests.integration.test_retraining import monitor

LOGGED, SIZE = 6000, 3000
"""The labels are six requests of the import."""
POPULATION = "/v1/admin/populations/remote/default/labelling-plan"


def log_predictions(store: Store) -> dict[UUID, int]:
    """Predictions of a model, and their true classes."""
    rng = np.random.default_rng(1)
    model = store.models.get("remote")
    truth = rng.integers(0, 3, LOGGED)
    logits = (np.eye(3)[truth] * 2 + rng.normal(size=(LOGGED, 3))).astype(np.float32)
    rows = [
        Prediction(new_prediction_id(), model.id, "default", 1, int(row.argmax()), row, None)
        for row in logits
    ]
    store.predictions.append([LogEntry((row,)) for row in rows])
    return {row.id: int(label) for row, label in zip(rows, truth, strict=True)}


def import_labels(service: Service, file: Path) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")}
    return subprocess.Popen(
        [sys.executable, "-m", "lifelong", "feedback", "import", str(file), "--source", "pathology"],
        env=kept
        | {
            "LIFELONG_TOKEN": str(service.token),
            "LIFELONG_PORT": str(service.port),
            "LIFELONG_DATA_DIRECTORY": str(file.parent / "data"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def make_plan(installation: Installation, service: Service, store: Store, folder: Path) -> UUID:
    """The id of a plan whose first monitor is killed while it works at it."""
    with service.connect() as connection:
        asked = connection.post_json(POPULATION, {"size": SIZE})
    assert asked.status == 202, asked.content
    job = UUID(asked.body["id"])
    with monitor(installation, folder / "roots" / "none") as first:
        eventually(lambda: store.jobs.get(job).state != "queued", "the plan to begin")
        children = psutil.Process(first.process.pid).children(recursive=True)
        os.kill(first.process.pid, signal.SIGKILL)
        psutil.wait_procs(children, timeout=20)
    with monitor(installation, folder / "roots" / "none"):
        eventually(lambda: store.jobs.get(job).state not in ("queued", "running"), "the plan to be made")
    assert store.jobs.get(job).state == "succeeded", store.jobs.get(job).error
    return job


def test_a_plan_is_completed_while_processes_are_killed(tmp_path: Path) -> None:
    installation = install(tmp_path)
    with installation.store() as store, running_service(tmp_path, installation.token) as service:
        service.wait_for_workers()
        truth = log_predictions(store)
        plan = make_plan(installation, service, store, tmp_path)
        assert [one.id for one in store.labelling_plans.list()] == [plan]
        rows = list(
            csv.DictReader(service.send("GET", POPULATION, Accept="text/csv").content.decode().splitlines())
        )
        assert len({row["prediction_id"] for row in rows}) == len(rows) == SIZE
        file = tmp_path / "labels.csv"
        with file.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, rows[0])
            writer.writeheader()
            writer.writerows(row | {"label": CLASS_NAMES[truth[UUID(row["prediction_id"])]]} for row in rows)

        def labelled() -> int:
            return store.labelling_plans.progress([plan])[plan].labelled

        for _ in range(2):
            before = labelled()
            service.wait_for_workers()
            with import_labels(service, file) as sending:
                eventually(lambda before=before: labelled() > before, "labels to arrive")
                service.workers()[-1].kill()
                sending.kill()
            assert labelled() < SIZE
        before = labelled()
        service.wait_for_workers()
        with import_labels(service, file) as sending:
            eventually(lambda: labelled() > before, "more labels to arrive")
            service.workers()[0].kill()
            said, _ = sending.communicate(timeout=120)
        assert sending.returncode == 0, said
        chosen = store.labelling_plans.chosen(plan)
        assert {one.prediction_id: one.label for one in chosen} == {
            UUID(row["prediction_id"]): truth[UUID(row["prediction_id"])] for row in rows
        }
        for row in rows:
            (label,) = store.labels.history(UUID(row["prediction_id"]))  # once, and never corrected
            assert label.propensity == float(row["propensity"])
        task, model = store.tasks.get("skin"), store.models.get("remote")
        estimate = LabellingEstimates(store, installation.settings).update(task, model, "default")
        assert estimate is not None
        assert estimate["labels"] == SIZE
