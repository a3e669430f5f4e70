"""Without settings, the service starts as many workers and threads as its cores allow."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.installation import install
from tests.integration.processes import Service, running_service

ONE_CORE = (
    "import os, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
    "os.execv(sys.executable, [sys.executable, '-m', 'lifelong_service'])"
)


def started_with(service: Service) -> dict[str, Any]:
    """The details of the line in its log about its start."""
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    (found,) = (line["details"] for line in lines if line["message"].startswith("starting to listen"))
    return found


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinities")
def test_a_single_core_has_two_workers(tmp_path: Path) -> None:
    installation = install(tmp_path)
    command = (sys.executable, "-c", ONE_CORE)
    with running_service(tmp_path, installation.token, command=command, workers=None) as service:
        service.wait_for_workers(2)
        assert started_with(service) == {"workers": 2, "threads": 1, "cores": 1}
