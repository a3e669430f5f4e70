"""Whether the spool could be written: it is needed when it is too late to find out."""

import os
from pathlib import Path

from lifelong_core.store.files import make_folder
from lifelong_core.store.spool.errors import translate_error

_PROBE = "probe"
_PROBE_BYTES = 64 * 1024
"""Of a micro-batch of usual size."""


def check_spool_folder(folder: Path) -> None:
    """Make the folder if need be, and write as much as an append would.

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
