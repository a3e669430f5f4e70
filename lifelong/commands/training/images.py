"""The images that a command gives to a job: by their path below an image root, or as an uploaded archive."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from lifelong_core.configuration.image_roots import find_root
from lifelong_core.configuration.settings import Settings
from lifelong_core.values.errors import InvalidInputError

_FORMS = {".tar": "tar", ".tar.gz": "tar.gz", ".tgz": "tar.gz", ".zip": "zip"}


@contextmanager
def located(
    data: Path, settings: Settings
) -> Generator[tuple[Mapping[str, Any], BinaryIO | None], None, None]:
    """The part of a job's payload that names the images, and the archive to upload; None: none is uploaded.

    Raises:
        InvalidInputError: a folder or table lies below none of the image roots.
    """
    path = data.resolve()
    form = next((form for suffix, form in _FORMS.items() if path.name.lower().endswith(suffix)), None)
    try:
        find_root(str(path), [root.resolve() for root in settings.image_roots])
    except InvalidInputError as error:
        if form is None:
            error.field = "--data"
            error.hint = f"{error.hint} Add the folder to LIFELONG_IMAGE_ROOTS, or give a tar or zip file."
            raise
        with path.open("rb") as file:
            yield {"archive": form}, file
        return
    yield {"path": str(path)}, None


def refusals(data: Path | None, source_data: Path | None, settings: Settings) -> list[str]:
    """Why a job would not be given these images; empty where it would."""
    refused = list[str]()
    try:
        source_path(source_data, settings)
    except InvalidInputError as error:
        refused.append(str(error))
    try:
        with nullcontext() if data is None else located(data, settings):
            pass
    except InvalidInputError as error:
        refused.append(str(error))
    return refused


def source_path(data: Path | None, settings: Settings) -> str | None:
    """The path of the source task's images; None: none are given.

    Raises:
        InvalidInputError: it lies below none of the image roots.
    """
    if data is None:
        return None
    path = str(data.resolve())
    try:
        find_root(path, [root.resolve() for root in settings.image_roots])
    except InvalidInputError as error:
        error.field = "--source-data"
        raise
    return path
