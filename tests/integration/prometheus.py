"""A real Prometheus with the alert rules that are shipped."""

import http.client
import json
import subprocess
import time
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
RULE_FILES = ["records.yml", "rules.yml"]


class Prometheus:
    """Answers queries at a port of this machine."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def get(self, path: str, **parameters: object) -> Any:
        """An answer of its API; None: it does not run yet."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self._address}{path}?{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code != http.client.SERVICE_UNAVAILABLE:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        except OSError:
            pass
        return None

    def query(self, expression: str, *, ranged: bool = False) -> list[Any]:
        """The series of an expression, at present or of the last minute; one that does not parse is an error."""
        path, times = "/api/v1/query", {}
        if ranged:
            path, times = "/api/v1/query_range", {"start": time.time() - 60, "end": time.time(), "step": 1}
        data = self.get(path, query=expression, **times)
        return data["result"] if data else []

    def value(self, expression: str) -> float | None:
        """The value of the first series; None: there is none."""
        series = self.query(expression)
        return float(series[0]["value"][1]) if series else None

    def firing(self) -> set[str]:
        """Names of the alerts."""
        return {labels["alertname"] for labels in self.alerts()}

    def alerts(self) -> list[dict[str, str]]:
        """Labels of the firing alerts."""
        data = self.get("/api/v1/alerts") or {"alerts": []}
        return [alert["labels"] for alert in data["alerts"] if alert["state"] == "firing"]


@contextmanager
def prometheus(
    folder: Path, *ports: int, at_once: Container[str] = (), token: str | None = None, seconds: int = 1
) -> Iterator[Prometheus]:
    """Scrapes services and monitors every second, with the rules as they are shipped but evaluated as often.

    Args:
        folder: for its files.
        ports: where the metrics are.
        at_once: alerts that do not wait.
        token: with which it scrapes; None: without one.
        seconds: between scrapes.
    """
    program = tools.program(tools.PROMETHEUS)
    for name in RULE_FILES:
        rules = yaml.safe_load((PROMETHEUS / name).read_text(encoding="utf-8"))
        for group in rules["groups"]:
            group["interval"] = f"{seconds}s"
            for rule in group["rules"]:
                if rule.get("alert", "") in at_once:
                    rule["for"] = "0s"
        (folder / name).write_text(yaml.safe_dump(rules), encoding="utf-8")
    scraping: dict[str, Any] = {
        "job_name": "lifelong-here",
        "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
    }
    if token is not None:
        (folder / "prometheus.token").write_text(f"{token}\n", encoding="utf-8")
        scraping["authorization"] = {"credentials_file": "prometheus.token"}
    configuration = {
        "global": dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"), f"{seconds}s"),
        "rule_files": RULE_FILES,
        "scrape_configs": [scraping],
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
