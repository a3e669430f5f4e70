"""`python -m lifelong_monitor.jobs.running.on_ray ID`: do the work of one job as a task of a Ray cluster.

A monitor's runner starts it when `job_runner` is ray, and watches it like a local job: this process is the driver of
Ray, submits one task and waits for it. Ray ends the task with its driver, so a claim that is lost, a time limit and a
monitor that stops end the work on the node, too. The monitor itself never imports Ray.

Ray repeats nothing: a task whose node was lost counts as an attempt of the job, and the runner, which holds the claim,
begins the next one with a new fencing token; a training goes on from its checkpoint, on whichever node.
"""

import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any
from uuid import UUID

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConfigurationError, LifelongError, UnavailableError
from lifelong_monitor.jobs.running.context import DEVICE_VARIABLE
from lifelong_monitor.jobs.running.outcome import Outcome
from lifelong_monitor.jobs.running.work import Work, outcome_of, send_outcome, work_of

_ADDRESS = "LIFELONG_RAY_ADDRESS"
_REACHABLE_SECONDS = 10.0
_OURS = "LIFELONG_"
_CREDENTIALS = ("PG", "AWS_", "AZURE_", "GOOGLE_", "GCS_", "FSSPEC_")
"""Prefixes of variables that drivers of databases and of object storage read."""


def main(identifier: str, find_work: Callable[[str], Work] = work_of) -> int:
    """Run the job on the cluster and send its outcome. 0: sent, errors included; else the process crashed."""
    return send_outcome(partial(_outcome_of, UUID(identifier), find_work))


def _outcome_of(identifier: UUID, find_work: Callable[[str], Work]) -> Outcome:
    try:
        settings = Settings.load()
        ray = import_ray()
        with Store.from_settings(settings) as store:
            job = store.jobs.get(identifier)
        check_reachable(settings.ray_address)
        _connect(ray, settings.ray_address)
        return _await(ray, _submit(ray, settings, job, find_work))
    except LifelongError as error:
        return Outcome.of_error(error)


def import_ray() -> Any:
    """The module `ray`.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        return import_module("ray")
    except ImportError as error:
        raise ConfigurationError(
            f"jobs cannot run on Ray: {error}.",
            field="LIFELONG_JOB_RUNNER",
            hint="Install it, on the monitor and on all nodes, in the clone of lifelong:"
            ' pip install -c constraints.txt -e ".[ray]".',
        ) from error


def check_reachable(address: str) -> None:
    """Check that a cluster listens at host:port; Ray would need two minutes for that. Other addresses pass.

    Raises:
        UnavailableError: none does.
    """
    host, _, port = address.rpartition(":")
    if "/" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), _REACHABLE_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_answer(address, error) from error


def _connect(ray: Any, address: str) -> None:
    try:
        # What a task prints stays in the logs of its node: it may hold data.
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except ValueError as error:
        raise ConfigurationError(
            f"{address!r} is no address of a Ray cluster: {error}.",
            field=_ADDRESS,
            hint="Give host:port, or auto for the cluster of this machine.",
        ) from error
    except (ConnectionError, RuntimeError, SystemExit) as error:  # Ray ends a process whose cluster is silent
        raise _no_answer(address, error) from error
    # Ray turns the signal into an exit status; the runner must see the signal.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _no_answer(address: str, error: BaseException) -> UnavailableError:
    return UnavailableError(
        f"the Ray cluster at {address} does not answer: {error}.",
        field=_ADDRESS,
        hint="The monitor runs on a node of the cluster: is `ray start` running there?",
    )


def _submit(ray: Any, settings: Settings, job: Job, find_work: Callable[[str], Work]) -> Any:
    """Submit the work of the job as a task, under a name without data."""
    resources = resources_for(settings, os.environ.get(DEVICE_VARIABLE))
    task = ray.remote(_work_on_node).options(name=f"lifelong {job.kind} {job.id}", max_retries=0, **resources)
    # As an argument, because Ray logs the environment of a task and shows it to all users of the cluster.
    return task.remote(str(job.id), job.token, variables_for(settings, os.environ), find_work)


def resources_for(settings: Settings, device: str | None) -> dict[str, float]:
    """The resources that Ray reserves for a job.

    Args:
        settings: of the monitor.
        device: of its slot; None: the job is no training.
    """
    resources = {"num_cpus": settings.ray_cpus, "num_gpus": settings.ray_gpus}
    if device is not None and device.startswith("cuda"):
        resources["num_gpus"] = max(1.0, settings.ray_gpus)
    elif device == "cpu":
        resources["num_gpus"] = 0.0
    if settings.job_memory_bytes is not None:
        resources["memory"] = settings.job_memory_bytes
    return resources


def _await(ray: Any, answer: Any) -> Outcome:
    errors = ray.exceptions
    try:
        outcome = Outcome.from_json(ray.get(answer))
    except errors.RayTaskError:  # the work raised an unexpected exception: a crash, told by its traceback
        raise
    except errors.OutOfMemoryError as error:
        raise LifelongError(
            "it was ended because the memory of its Ray node was full.",
            hint="Ask for less (fewer samples), or run it on a node with more memory.",
        ) from error
    except errors.RayError as error:
        raise UnavailableError(
            f"the Ray node of the job was lost ({type(error).__name__}).", field=_ADDRESS
        ) from error
    if outcome is None:
        raise TypeError("a task returns the outcome of its job")
    return outcome


def variables_for(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Environment variables by which a process on another node has the settings and credentials of this one.

    Ray numbers the GPUs that it gives to a task from 0, so a slot's number of a GPU does not hold there.

    Args:
        settings: of this process; paths become absolute.
        environment: variables of this process.
    """
    changed = {
        "data_directory": str(settings.data_directory.resolve()),
        "database_url": settings.resolved_database_url,
        "artifacts_url": settings.resolved_artifacts_url,
    }
    values = settings.model_dump(mode="json", exclude_unset=True, exclude_none=True) | changed
    ours = {
        f"{_OURS}{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }
    if DEVICE_VARIABLE in environment:
        ours[DEVICE_VARIABLE] = environment[DEVICE_VARIABLE].partition(":")[0]
    return ours | {name: value for name, value in environment.items() if name.startswith(_CREDENTIALS)}


def _work_on_node(
    identifier: str, token: int, variables: Mapping[str, str], find_work: Callable[[str], Work]
) -> str:
    """Do the work in a process of the cluster, with the settings of the monitor only; return the outcome as JSON."""
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        del os.environ[name]
    os.environ.update(variables)
    return outcome_of(UUID(identifier), find_work, token=token).to_json()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
