"""A real Prometheus with the alert rules that are shipped."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests import tools
from tests.integration.processes import PATIENCE_SECONDS
from tests.ports import free_port

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
        """Names of the alerts."""
        return {labels["alertname"] for labels in self.alerts()}

    def alerts(self) -> list[dict[str, str]]:
        """Labels of the firing alerts."""
        data = self.get("/api/v1/alerts") or {"alerts": []}
        return [alert["labels"] for alert in data["alerts"] if alert["state"] == "firing"]


@contextmanager
def prometheus(folder: Path, port_of_target: int, *, at_once: Container[str]) -> Iterator[Prometheus]:
    """Scrapes a service or a monitor every 200 ms, with the alert rules as they are shipped but evaluated every second.

    Args:
        folder: for its files.
        port_of_target: where the metrics are.
        at_once: alerts that do not wait.
    """
    program = tools.program(tools.PROMETHEUS)
    rules = yaml.safe_load((PROMETHEUS / "rules.yml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            if rule.get("alert", "") in at_once:
                rule["for"] = "0s"
    (folder / "rules.yml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    configuration = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {
                "job_name": "lifelong",
                "static_configs": [{"targets": [f"127.0.0.1:{port_of_target}"]}],
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
