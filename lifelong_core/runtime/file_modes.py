"""Modes of the product's files: only their owner has access, independent of the umask."""

import os
import stat
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def restrict_new_files() -> None:
    """Set the umask of this process and its children, so that only the owner can access new files."""
    os.umask(_OTHERS)


def is_accessible_to_others(path: Path) -> bool:
    """Whether group or others may read, write or run this file or folder; False for links and missing files."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & _OTHERS)


def restrict(path: Path) -> None:
    """Remove the permissions of group and others.

    Raises:
        OSError: this user does not own the file.
    """
    path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
