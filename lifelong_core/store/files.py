"""Atomic and durable writes of files, and private files and folders."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lifelong_core.runtime.files import PRIVATE_FILE, PRIVATE_FOLDER
from lifelong_core.values.errors import ConfigurationError


def write_whole(path: Path, content: bytes, *, mode: int = PRIVATE_FILE) -> None:
    """Replace a file atomically; the content is on the disk when this returns.

    Args:
        path: of the file; its folder is created if missing.
        content: the whole content.
        mode: permissions of the file, masked by the umask.

    Raises:
        OSError: the file cannot be written; the previous file is unchanged.
    """
    with write_new(path, mode=mode) as file:
        file.write(content)


@contextmanager
def write_new(path: Path, *, mode: int = PRIVATE_FILE) -> Generator[BinaryIO, None, None]:
    """Yield a file that replaces the one at `path` after the block, atomically; then it is on the disk.

    Raises:
        OSError: the file cannot be written; the previous file is unchanged.
    """
    with replace_file(path) as draft:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            yield file


@contextmanager
def replace_file(path: Path) -> Generator[Path, None, None]:
    """Yield a draft's path; after the block the draft replaces the file, after an exception it is deleted.

    Raises:
        OSError: the file cannot be written; the previous file is unchanged.
    """
    make_folder(path.parent)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        yield draft
        sync_to_disk(draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    # The new name is part of the folder, not of the file.
    sync_to_disk(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to their owner only; on the disk when this returns."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in (*reversed(missing), folder):
        one.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    for made in missing:
        sync_to_disk(made.parent)


def make_data_folder(folder: Path) -> None:
    """Create the data folder of the product and its missing parents, accessible to their owner only.

    Raises:
        ConfigurationError: it cannot be created.
    """
    try:
        make_folder(folder)
    except OSError as error:
        raise ConfigurationError(
            f"the folder {folder} cannot be made: {error.strerror}.",
            field="LIFELONG_DATA_DIRECTORY",
            hint="Choose a folder that this user can write to, on a disk with room.",
        ) from error


def make_private_file(path: Path) -> None:
    """Create an empty file that only its owner can read, before a library would create it readable by all.

    Raises:
        OSError: it cannot be created.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))


def sync_to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_identity(file: Path | None) -> tuple[int, int] | None:
    """Device and inode of the file; None: it is missing or unreachable."""
    try:
        status = os.stat(file) if file is not None else None  # noqa: PTH116 - as fast as can be: it is asked for each transaction
    except OSError:
        return None
    return None if status is None else (status.st_dev, status.st_ino)
