"""Checks of this machine: cores, execution providers, the spool, the disks and file modes."""

import os
import shutil
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from stat import S_IWGRP, S_IWOTH

from lifelong_core.configuration.serving_plan import serving_plan
from lifelong_core.configuration.settings import settings_file
from lifelong_core.doctor.findings import Finding, Installation, failure, ok, warning
from lifelong_core.runtime.files import is_accessible_to_others
from lifelong_core.runtime.graph_check import check_execution_providers
from lifelong_core.runtime.private_files import absolute, database_file, find_accessible, local_artifacts
from lifelong_core.store.engine.database import parse_url
from lifelong_core.store.spool.spool import Spool
from lifelong_core.values.errors import InvalidInputError

_WAITS_TOO_LONG = timedelta(minutes=5)
"""A spool is empty within seconds when the database answers, as it does while this is being looked at."""
_NEARLY_FULL = 0.8
_FEW_BYTES = 1 << 30
_NO_BYTES = 100 << 20


def check_spool(installation: Installation) -> Iterator[Finding]:
    """No prediction waits long in the spool, and none was put aside."""
    settings = installation.settings
    folder = settings.resolved_spool_directory
    opened = Spool(folder, maximum_bytes=settings.maximum_spool_bytes)
    try:
        state = opened.state()
        refused = opened.dead_letters()
    finally:
        opened.close()
    if state.oldest is not None:
        age = installation.now - state.oldest
        found = failure if age > _WAITS_TOO_LONG else warning
        yield found(
            f"{state.predictions} predictions wait in {folder}, the first for {_span(age)}.",
            "The service delivers them while the database answers: is `lifelong serve` running here?",
        )
    if state.bytes > _NEARLY_FULL * state.maximum_bytes:
        yield failure(
            f"it holds {_megabytes(state.bytes)} of {_megabytes(state.maximum_bytes)}; when it is full,"
            " predictions get 503.",
            "Bring the database back, or raise LIFELONG_MAXIMUM_SPOOL_BYTES.",
        )
    if state.damaged_records:
        yield warning(
            f"{state.damaged_records} damaged pieces were put aside in {folder / 'damaged'}.",
            "Torn ends of killed writers are harmless: their requests were never answered. More than one per kill"
            " means a bad disk.",
        )
    if state.refused_records:
        yield warning(
            f"the log refused {state.refused_records} entries for good, the last because {refused[-1].reason}",
            f"They are kept in {folder / 'refused'}; tell the developers.",
        )
    if not _can_write(folder):
        yield failure(
            f"this user cannot write to {folder}: without it an outage of the database stops predictions.",
            "Give the folder to the user that runs the product, or name another: LIFELONG_SPOOL_DIRECTORY.",
        )
    yield ok(f"{state.predictions} predictions wait in {folder}.")


def check_cores(installation: Installation) -> Iterator[Finding]:
    """The workers and their threads fit the cores of this machine."""
    settings = installation.settings
    plan = serving_plan(settings)
    hint = "Leave out LIFELONG_WORKERS and LIFELONG_INTRA_OP_THREADS: both are then chosen from the cores."
    if plan.oversubscribes:
        yield warning(f"{plan}: the threads take the cores from each other.", hint)
    if plan.leaves_half_idle:
        yield warning(f"{plan}: half of the cores or more cannot be used for predictions.", hint)
    given = [name for name in ("workers", "intra_op_threads") if getattr(settings, name) is not None]
    yield ok(f"{plan}, {' and '.join(given) + ' as in the settings' if given else 'chosen from the cores'}.")


def check_providers(installation: Installation) -> Iterator[Finding]:
    """A service can start with the execution providers, and the running workers use them."""
    configured = installation.settings.execution_providers
    try:
        usable = check_execution_providers(installation.settings)
    except InvalidInputError:
        if configured:
            yield warning(
                "the setting could not be checked on this host: is ONNX Runtime installed?",
                "Install the extra cpu or gpu where `lifelong serve` runs, and run doctor there.",
            )
        yield ok("none are configured, and ONNX Runtime could not be asked on this host.")
        return
    in_use = sorted(
        {
            load.provider
            for worker in installation.store.workers.list()
            for load in worker.models.values()
            if not worker.is_lost and load.provider is not None
        }
    )
    for name in in_use:
        if configured and name not in configured:
            yield warning(
                f"a worker runs graphs with {name}, which is not in the settings here ({', '.join(configured)}).",
                "Was the setting changed after it started, or on this host only? `lifelong heads workers`.",
            )
    if usable.unused_gpu is not None:
        yield warning(
            "CUDA is installed and cannot be started: a service runs its graphs on the CPU.",
            f"{usable.unused_gpu} Or set LIFELONG_EXECUTION_PROVIDERS to choose the CPU.",
        )
    used = f"; workers run graphs with {', '.join(in_use)}" if in_use else ""
    yield ok(f"{', '.join(usable.names)}{used}.")


def check_disks(installation: Installation) -> Iterator[Finding]:
    """The disks have free space."""
    settings = installation.settings
    places = {"data directory": settings.data_directory, "spool": settings.resolved_spool_directory}
    file, artifacts = database_file(settings), local_artifacts(settings)
    if file is not None:
        places["database"] = file.parent
    if artifacts is not None:
        places["artifacts"] = artifacts
    least = None
    for name, place in places.items():
        there = _existing(place)
        usage = shutil.disk_usage(there)
        least = usage.free if least is None else min(least, usage.free)
        if usage.free < _NO_BYTES:
            yield failure(
                f"the disk of the {name} ({there}) has {_megabytes(usage.free)} left.", "Make room there."
            )
        elif usage.free < _FEW_BYTES or (name == "spool" and usage.free < settings.maximum_spool_bytes):
            yield warning(
                f"the disk of the {name} ({there}) has {_megabytes(usage.free)} left"
                + (
                    f"; the spool may take {_megabytes(settings.maximum_spool_bytes)}."
                    if name == "spool"
                    else "."
                ),
                "Make room there.",
            )
    yield ok(f"{_megabytes(least or 0)} free at least.")


def check_file_modes(installation: Installation) -> Iterator[Finding]:
    """Only the product's user can read its files on this machine."""
    settings = installation.settings
    # The group key has a check of its own, which follows links.
    key_file, directory = absolute(settings.resolved_group_key_file), absolute(settings.data_directory)
    found = [path for path in find_accessible(settings) if path != key_file]
    if found:
        more = f" and {len(found) - 1} more files and folders" if len(found) > 1 else ""
        yield warning(
            f"other users of this machine may use {found[0]}{more}.",
            "Run `lifelong init` as the user that runs the product: it takes their rights away.",
        )
    if directory not in found and directory.is_dir() and directory.stat().st_mode & (S_IWGRP | S_IWOTH):
        yield warning(
            f"other users of this machine may replace files in {directory}.", f"chmod go-w {directory}"
        )
    file = settings_file()
    holds_password = file.is_file() and _password_in(file)
    if holds_password and is_accessible_to_others(file):
        yield warning(
            f"other users of this machine may read the password of the database in {file}.",
            f"chmod 600 {file}",
        )
    yield ok("only their owner uses the files of this installation.")


def _password_in(file: Path) -> bool:
    """Whether the settings file holds a URL of the database with a password."""
    url = tomllib.loads(file.read_text(encoding="utf-8")).get("database_url")
    return bool(url) and parse_url(str(url)).password is not None


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that exists."""
    return next(one for one in (folder.resolve(), *folder.resolve().parents) if one.exists())


def _can_write(folder: Path) -> bool:
    return os.access(_existing(folder), os.W_OK | os.X_OK)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _span(age: timedelta) -> str:
    seconds = max(0, round(age.total_seconds()))
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
