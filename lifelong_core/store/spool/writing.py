"""Atomic append of bytes to a file."""

import contextlib
import os


def append_bytes(descriptor: int, data: bytes, *, size: int, is_synced: bool) -> None:
    """Append all bytes to a file, or none; a kill during the call leaves a torn tail.

    Args:
        descriptor: of the file, opened for appending.
        data: the bytes to append.
        size: of the file before the append.
        is_synced: whether the bytes are on the disk, not only in the kernel, when this returns.

    Raises:
        OSError: the bytes cannot be written.
    """
    try:
        written = os.write(descriptor, data)
        # When a disk fills up, the first write is partial and only the next one fails.
        while written < len(data):
            written += os.write(descriptor, data[written:])
        if is_synced:
            os.fdatasync(descriptor)
    except BaseException:
        # If the truncation fails, too, the bytes are a torn tail, which every reader recognises.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise
