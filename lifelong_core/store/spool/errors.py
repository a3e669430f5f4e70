"""Errors of the spool, with hints for the operator."""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lifelong_core.values.errors import UnavailableError

_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space on its disk."),
    **dict.fromkeys(
        (errno.EROFS, errno.EACCES, errno.EPERM), "See to it that this user can write to the folder."
    ),
    **dict.fromkeys(
        (errno.ENOTDIR, errno.EEXIST, errno.ENOENT), "Name a folder by LIFELONG_SPOOL_DIRECTORY."
    ),
}


class SpoolFullError(UnavailableError):
    """The spool has reached its largest size."""


@contextmanager
def translate_error(folder: Path) -> Generator[None, None, None]:
    """Translate operating system errors about the spool's files into UnavailableError.

    Raises:
        UnavailableError: a call in the block failed.
    """
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "Look after its disk.")
        raise UnavailableError(f"the spool {folder} cannot be used: {error.strerror}.", hint=hint) from error
