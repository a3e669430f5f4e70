"""Limits of memory that are chosen from what the machine, or its control group, has."""

from pathlib import Path

import pytest

from lifelong_core.configuration.serving_plan import plan_serving, worker_memory
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.memory import usable_memory

GIBIBYTE = 2**30


def test_workers_and_jobs_share_the_memory_of_a_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "mount" / "pod"
    group.mkdir(parents=True)
    (group / "memory.max").write_text(f"{GIBIBYTE // 2}\n")
    (group.parent / "memory.max").write_text("max\n")
    (tmp_path / "cgroup").write_text("0::/pod\n")
    (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {group.parent} rw - cgroup2 cgroup2 rw\n")
    assert usable_memory(tmp_path) == GIBIBYTE // 2
    for module in ("settings", "serving_plan"):
        monkeypatch.setattr(f"lifelong_core.configuration.{module}.usable_memory", lambda: 10 * GIBIBYTE)
    assert Settings().resolved_job_memory_bytes == 5 * GIBIBYTE
    assert worker_memory(Settings(), plan_serving(2)) == 4 * GIBIBYTE
    assert worker_memory(Settings(), plan_serving(2, workers=1000)) == 2_000_000_000
