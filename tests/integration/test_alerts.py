"""A real service, scraped by a real Prometheus: the first failed prediction counts, although probes succeed."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from lifelong_core.store import register_calibration
from tests import tools
from tests.integration.installation import image, install
from tests.integration.processes import PATIENCE_SECONDS, eventually, free_port, running_service
from tests.unit.service.conftest import GREY, calibration

PROMETHEUS = Path(__file__).parents[2] / "grafana" / "prometheus"


class Prometheus:
    """Answers queries at a port of this machine."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def get(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self._address}{path}?{query}", timeout=5) as answer:
                return json.load(answer)["data"]
        except (urllib.error.URLError, ConnectionError):
            return None

    def value(self, expression: str) -> float | None:
        """Of an expression with one series; None: it has none."""
        data = self.get("/api/v1/query", query=expression)
        return float(data["result"][0]["value"][1]) if data and data["result"] else None

    def firing(self) -> set[str]:
        data = self.get("/api/v1/alerts")
        return {alert["labels"]["alertname"] for alert in data["alerts"] if alert["state"] == "firing"}


@contextmanager
def prometheus(folder: Path, service_port: int) -> Iterator[Prometheus]:
    """Scrapes the service every 200 ms, with the alert rules as they are shipped but evaluated every second."""
    program = tools.program(tools.PROMETHEUS)
    rules = yaml.safe_load((PROMETHEUS / "rules.yml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            if rule.get("alert") in ("LifelongErrorRate", "LifelongNoPredictionAnswered"):
                rule["for"] = "0s"
    (folder / "rules.yml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    configuration = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {
                "job_name": "lifelong-service",
                "static_configs": [{"targets": [f"127.0.0.1:{service_port}"]}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    port = free_port()
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def test_the_first_failed_predictions_are_counted_beside_probes_that_succeed(tmp_path: Path) -> None:
    installation = install(tmp_path)
    with installation.store() as store:
        # Its graph cannot be loaded, so every prediction by it is a 503.
        broken = store.models.add(
            "skin", "broken", kind="onnx", onnx=b"no graph", preprocessing=GREY, actor="test"
        )
        register_calibration(store, broken.reference, calibration(), actor="test")
    with (
        running_service(tmp_path, installation.token) as service,
        prometheus(tmp_path, service.port) as monitoring,
    ):
        service.wait_for_workers()
        failed = 'lifelong_requests_total{route="/v1/predict",status="503"}'
        eventually(lambda: monitoring.value(f"sum({failed})") == 0, "the counter to be scraped at 0")
        for _ in range(3):
            for _ in range(30):
                assert service.send("GET", "/livez").status == 200
            reply = service.send("POST", f"/v1/predict?model={broken.name}", image())
            assert reply.status == 503, reply.content
        counted = f"sum(increase({failed}[10m])) > 2.5"
        eventually(lambda: monitoring.value(counted), "the failures to be counted, the first one included")
        eventually(
            lambda: {"LifelongErrorRate", "LifelongNoPredictionAnswered"} <= monitoring.firing(),
            "the alerts to fire",
        )
        assert service.send("POST", "/v1/predict", image()).status == 200
        eventually(
            lambda: "LifelongNoPredictionAnswered" not in monitoring.firing(), "a success to end the alert"
        )
        assert "LifelongErrorRate" in monitoring.firing()
