"""Modes of private files, a temporary folder for this process and its children, and space of mapped files.

Only the owner of the product's files has access, independent of the umask. The temporary folder works where the root
file system is read-only. A write to a hole of a mapped file ends the process if the disk is full.
"""

import os
import stat
import tempfile
from pathlib import Path
from typing import IO, Any

from lifelong_core.values.errors import ConfigurationError

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


def ensure_temporary_folder(data_directory: Path) -> None:
    """Let Python's `tempfile` use `tmp` of the data directory where no usual temporary folder can be written.

    Raises:
        ConfigurationError: that cannot be written either.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:  # of all that it has tried
        folder = data_directory.resolve() / "tmp"
        try:
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            os.environ["TMPDIR"] = str(folder)
            tempfile.gettempdir()
        except OSError as error:
            raise ConfigurationError(
                f"no temporary folder can be written: neither /tmp, nor {folder} ({error.strerror or error}).",
                field="TMPDIR",
                hint="Mount a writable folder with room (in Kubernetes an emptyDir) and name it in TMPDIR.",
            ) from error


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


def read_secret(file: Path, field: str) -> str:
    """The content of a secret's file, without white space around it; `field` is the setting that names the file.

    Raises:
        ConfigurationError: it cannot be read, or is empty.
    """
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the file {file} cannot be read: {error}.", field=field) from error
    if not secret:
        raise ConfigurationError(f"the file {file} is empty.", field=field)
    return secret
