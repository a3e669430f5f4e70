"""What the driver of Ray tells without a cluster: missing packages, silent addresses, and the settings of a node."""

import os
import sys
from pathlib import Path

import pytest

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.values.errors import ConfigurationError, UnavailableError
from lifelong_monitor.jobs.running.on_ray import check_reachable, import_ray, resources_for, variables_for
from lifelong_monitor.jobs.running.runner import check_job_runner
from tests.ports import free_port


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"\[ray\]") as caught:
        import_ray()
    assert caught.value.field == "LIFELONG_JOB_RUNNER"


def test_a_monitor_without_the_package_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    check_job_runner("ray")
    monkeypatch.setattr("lifelong_monitor.jobs.running.runner.find_spec", lambda _: None)
    check_job_runner("local")
    with pytest.raises(ConfigurationError, match=r"\[ray\]"):
        check_job_runner("ray")


def test_an_address_at_which_nothing_listens_is_told_at_once() -> None:
    with pytest.raises(UnavailableError, match="does not answer") as caught:
        check_reachable(f"127.0.0.1:{free_port()}")
    assert caught.value.field == "LIFELONG_RAY_ADDRESS"
    check_reachable("auto")
    check_reachable("ray://127.0.0.1:9")


def test_a_node_gets_the_settings_of_the_monitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings(
        data_directory=Path("here"),
        log_format=None,
        execution_providers=("CPUExecutionProvider",),
        quantifier="EMQ",
        policy=PolicySettings(minimum_samples=17),
        environment_policies={"clinic": PolicySettings(mode="shadow")},
    )
    given = variables_for(settings, {"PGPASSWORD": "secret", "LIFELONG_QUANTIFIER": "CC", "HOME": "/root"})
    assert {name for name in given if not name.startswith("LIFELONG_")} == {"PGPASSWORD"}
    for name in [name for name in os.environ if name.startswith("LIFELONG_")]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir("/")
    found = Settings.load()
    places = {
        "data_directory": tmp_path / "here",
        "database_url": f"sqlite:///{tmp_path}/here/lifelong.db",
        "artifacts_url": f"file://{tmp_path}/here/artifacts",
    }
    assert found == settings.model_copy(update=places)
    assert found.policy_for("clinic") == PolicySettings(minimum_samples=17, mode="shadow")


@pytest.mark.parametrize(
    ("device", "gpus"), [(None, 0.0), ("cpu", 0.0), ("auto", 0.0), ("cuda", 1.0), ("cuda:3", 1.0)]
)
def test_a_training_reserves_the_device_of_its_slot_on_any_node(device: str | None, gpus: float) -> None:
    assert resources_for(Settings(), device) == {"num_cpus": 1, "num_gpus": gpus}
    large = Settings(ray_cpus=4, ray_gpus=2, job_memory_bytes=2**33)
    kept = 0.0 if device == "cpu" else 2.0
    assert resources_for(large, device) == {"num_cpus": 4, "num_gpus": kept, "memory": 2**33}
    environment = {} if device is None else {"LIFELONG_JOB_DEVICE": device}
    given = variables_for(Settings(), environment).get("LIFELONG_JOB_DEVICE")
    assert given == ("cuda" if device == "cuda:3" else device)
