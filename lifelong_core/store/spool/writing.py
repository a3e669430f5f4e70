"""Adding bytes to a file so that a failed attempt leaves none of them behind."""

import contextlib
import os


def append_bytes(descriptor: int, data: bytes, *, size: int, is_synced: bool) -> None:
    """Write at the end of a file, wholly or not at all; a kill in between leaves a torn tail.

    Args:
        descriptor: of the file, opened for appending.
        data: what to add.
        size: of the file before.
        is_synced: whether the bytes shall be on the disk, and not only with the kernel, when this returns.

    Raises:
        OSError: the bytes cannot be written.
    """
    try:
        written = os.write(descriptor, data)
        # A disk that fills up takes a part first, and refuses only the rest.
        while written < len(data):
            written += os.write(descriptor, data[written:])
        if is_synced:
            os.fdatasync(descriptor)
    except BaseException:
        # Where even this fails, the bytes are a torn tail, which every reader recognises.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise
