"""A write test of the spool folder, before an outage needs the spool."""

import os
from pathlib import Path

from lifelong_core.store.files import make_folder
from lifelong_core.store.spool.segments import translate_error

_PROBE = "probe"
_PROBE_BYTES = 64 * 1024
"""Size of a usual micro-batch."""


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
