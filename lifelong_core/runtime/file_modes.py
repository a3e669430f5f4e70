"""Modes of the files that the product writes: their owner alone uses them, whatever the umask."""

import os
import stat
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def restrict_new_files() -> None:
    """Let only the owner use what this process and its children write from now on, also through libraries."""
    os.umask(_OTHERS)


def is_accessible_to_others(path: Path) -> bool:
    """Whether group or others may read, write or run this file or folder; False for links and where there is none."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & _OTHERS)


def restrict(path: Path) -> None:
    """Take the rights of group and others away.

    Raises:
        OSError: this user does not own it.
    """
    path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
