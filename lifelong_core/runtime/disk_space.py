"""Space of files that are mapped into memory: on a full disk, a write to a hole of such a file ends the process."""

import os
from typing import IO, Any


def reserve(file: IO[Any], size: int) -> None:
    """Give the file this size in bytes, or a larger one that it has, without holes.

    Raises:
        OSError: the disk has no space for it.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        present = os.fstat(file.fileno()).st_size
        os.pwrite(file.fileno(), bytes(max(0, size - present)), present)
