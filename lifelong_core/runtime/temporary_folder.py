"""A temporary folder for this process and its children, also where the root file system is read-only."""

import os
import tempfile
from pathlib import Path

from lifelong_core.runtime.file_modes import PRIVATE_FOLDER
from lifelong_core.values.errors import ConfigurationError


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
