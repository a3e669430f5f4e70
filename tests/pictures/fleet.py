"""Twenty hospitals whose predictions go to a real service, watched by a real monitor and a real Prometheus."""

import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lifelong.monitoring_files import export_monitoring_files
from lifelong_core.deploy import LabeledLogits
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import Model, Scope, Store
from tests import tools
from tests.integration.monitors import running_monitor
from tests.integration.processes import PATIENCE_SECONDS, Connection, Service, running_service
from tests.ports import free_port
from tests.unit.monitor.population import BALANCED, COSTS, SHIFTED, add_model, draw, open_store, settings_for
from tests.unit.monitor.recommendations import attach, metric, naming

HOSPITALS = tuple(f"hospital-{number:02}" for number in range(1, 21))
SWAPS, PROPOSES, REFUSES, PINNED, SHADOW = (f"hospital-{number:02}" for number in (3, 7, 12, 15, 18))
"""Hospitals whose class mix, or more than that, changes in the middle."""
LABELLED = ("hospital-01", "hospital-02", SWAPS, REFUSES)
STATED = metric("EC", parameters={"costs": COSTS, "prevalence": BALANCED})
ROUND_SECONDS, CYCLE_SECONDS, SCRAPE_SECONDS = 5, 15, 2
ROUNDS_PER_JOB = 8
SAMPLES = 40
"""Predictions of a hospital in a round."""


@dataclass(frozen=True)
class Fleet:
    """The running installation."""

    store: Store
    model: Model
    service: Service
    prometheus: str
    """its address"""


@contextmanager
def running_fleet(folder: Path) -> Iterator[Fleet]:
    """Start all processes; they end with the block."""
    settings = settings_for(folder / "data")
    policies = {PROPOSES: {"mode": "propose"}, SHADOW: {"mode": "shadow"}}
    common = {
        "policy__unusual_traffic": "report",
        "window_samples": 600,
        "maximum_environments": 100,
        "environment_policies": json.dumps(policies),
        "cycle_interval_seconds": CYCLE_SECONDS,
        "cycle_new_samples": 0,
    }
    with open_store(settings) as store:
        _, secret = store.tokens.create("gateway", [Scope.ADMIN], actor="pictures")
        model = add_model(store, "lesions")
        thresholds = (
            AcceptanceThreshold(metric="AC", value=0.75),
            AcceptanceThreshold(metric="TPR", value=0.6),
        )
        attach(store, *thresholds, what=naming(STATED, "AC", "TPR"))
        store.jobs.submit("validate", {}, actor="pictures")  # it fails, as it has no data
        for name in HOSPITALS:
            store.environments.ensure(name, limit=len(HOSPITALS) + 1)
        reason = "a study with fixed decisions"
        store.heads.pin(model.reference, environment=PINNED, reason=reason, actor="pictures")
        with (
            running_service(folder, secret, **common) as service,
            running_monitor(folder, **common) as monitor,
            _running_prometheus(folder, service.port, monitor.port) as address,
        ):
            service.wait_for_workers()
            yield Fleet(store, model, service, address)


def send(fleet: Fleet, *, minutes: float) -> None:
    """Send predictions and labels; after two fifths of the time some hospitals change."""
    began, number = time.monotonic(), 0
    with fleet.service.connect() as connection:
        while (elapsed := time.monotonic() - began) < 60 * minutes:
            for place, name in enumerate(HOSPITALS):
                has_changed = elapsed > 24 * minutes and name in (SWAPS, PROPOSES, REFUSES, PINNED, SHADOW)
                _send_round(connection, name, _draw(name, has_changed, seed=1_000 * number + place))
            if number % ROUNDS_PER_JOB == 0:
                asked = connection.post_json(f"/v1/admin/populations/lesions@1/{HOSPITALS[0]}/cycle", {})
                assert asked.status in (200, 202), asked.content
            number += 1
            time.sleep(max(0.0, began + number * ROUND_SECONDS - time.monotonic()))


def _draw(name: str, has_changed: bool, *, seed: int) -> LabeledLogits:
    if not has_changed:
        return draw(BALANCED, SAMPLES, seed=seed)
    if name != REFUSES:
        return draw(SHIFTED, SAMPLES, seed=seed)
    # Another scanner: every class looks different, which no mix of classes explains.
    found = draw(BALANCED, SAMPLES, seed=seed)
    return LabeledLogits(found.logits * 0.4 + np.array([0.0, 2.0, 0.0]), found.labels)


def _send_round(connection: Connection, name: str, drawn: LabeledLogits) -> None:
    body = {"logits": drawn.logits.astype(float).tolist()}
    answer = connection.post_json(f"/v1/logits?model=lesions&environment={name}", body)
    assert answer.status == 200, answer.content
    if name in LABELLED:
        for one, label in list(zip(answer.body["predictions"], drawn.labels, strict=True))[:10]:
            labelled = connection.post_json(
                "/v1/feedback", {"prediction_id": one["prediction_id"], "label": int(label)}
            )
            # On a busy machine the database may be late; a missing label changes no picture.
            assert labelled.status in (200, 201, 503), labelled.content


@contextmanager
def _running_prometheus(folder: Path, service: int, monitor: int) -> Iterator[str]:
    """With the files that the product exports, but frequent scrapes, and alerts that wait for seconds only."""
    export_monitoring_files(folder / "monitoring")
    files = folder / "monitoring" / "prometheus"
    for file in files.glob("*.yml"):
        _replace(
            file,
            {
                r"127\.0\.0\.1:3000\"": f'127.0.0.1:{service}"',
                r"127\.0\.0\.1:9465": f"127.0.0.1:{monitor}",
                r"(scrape_interval|evaluation_interval|interval): \w+": rf"\1: {SCRAPE_SECONDS}s",
                r"for: \w+": f"for: {ROUND_SECONDS}s",
            },
        )
    port = free_port()
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                tools.program(tools.PROMETHEUS),
                f"--config.file={files / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'series'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _replace(file: Path, replacements: Mapping[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for pattern, wanted in replacements.items():
        text = re.sub(pattern, wanted, text)
    file.write_text(text, encoding="utf-8")
