"""Checks of an installation before the workers start."""

import logging
import os
from pathlib import Path

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.files import make_folder
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.store.spool.segments import translate_error
from lifelong_core.values.errors import UnavailableError

logger = logging.getLogger(__name__)

_PROBE = "probe"
_PROBE_BYTES = 64 * 1024
"""Size of a usual micro-batch."""

LOCKED_SECONDS = 4.0
"""Longest wait in seconds for a locked SQLite file at the start, which then fails; upgrades take less."""


def check_spool_folder(folder: Path) -> None:
    """Create the folder if it is missing, and write a file of the size of a micro-batch.

    Raises:
        UnavailableError: it cannot be written, or its disk is full.
    """
    with translate_error(folder):
        make_folder(folder)
        probe = folder / f"{_PROBE}-{os.getpid()}"
        try:
            probe.write_bytes(bytes(_PROBE_BYTES))
        finally:
            probe.unlink(missing_ok=True)


def check_database(settings: Settings) -> None:
    """Check the installation before the workers start, because failing workers are restarted for ever.

    A database that does not answer is accepted if the registry is cached on the disk: the workers serve the cached
    registry, and their predictions wait in the spool.

    Raises:
        ConfigurationError: the database is missing, has the schema of another version or cannot be written.
        UnavailableError: the spool cannot be written; or the database does not answer, and no registry is cached.
    """
    if settings.execution_providers:
        from lifelong_service.graphs.providers import (
            choose_providers,  # loads ONNX Runtime: a fifth of a second
        )

        choose_providers(settings.execution_providers, device=settings.gpu_device)

    try:
        with Store.from_settings(settings, patience_seconds=LOCKED_SECONDS) as store:
            store.check_writable()
    except UnavailableError as error:
        if not _has_registry(settings):
            raise
        logger.warning(
            "%s The service starts all the same: it serves what it served last and keeps its predictions in the spool"
            " until the database is back.",
            error.message,
        )
    check_spool_folder(settings.resolved_spool_directory)


def _has_registry(settings: Settings) -> bool:
    cache = RegistryCache(settings.registry_cache_file, database_url=settings.resolved_database_url)
    try:
        return cache.load() is not None
    except UnavailableError:
        return False
