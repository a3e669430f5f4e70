"""Files that are there as a whole or not at all, whatever dies, and that a power failure does not take back."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from lifelong_core.errors import ConfigurationError
from lifelong_core.runtime.file_modes import PRIVATE_FILE, PRIVATE_FOLDER


def write_whole(path: Path, content: bytes, *, mode: int = PRIVATE_FILE) -> None:
    """Replace a file atomically; the content is on the disk when this returns.

    Args:
        path: of the file; its folder is made if need be.
        content: all of it.
        mode: permissions of the file, less what the umask takes away.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    with replace_file(path) as draft:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)


@contextmanager
def replace_file(path: Path) -> Generator[Path, None, None]:
    """Another name, under which the block writes the file; then it is renamed. Without a draft after an exception.

    Raises:
        OSError: it cannot be written; what was there before is still there.
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
    # The new name is written to the disk with the folder, not with the file.
    sync_to_disk(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, for their owner alone; on the disk when this returns."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in (*reversed(missing), folder):
        one.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    for made in missing:
        sync_to_disk(made.parent)


def make_data_folder(folder: Path) -> None:
    """Make the folder in which the product keeps its data, and those above it, for their owner alone.

    Raises:
        ConfigurationError: it cannot be made.
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
    """Make an empty file that its owner alone uses, for a library that would make it readable by all.

    Raises:
        OSError: it cannot be made.
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
