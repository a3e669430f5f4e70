"""The images of a job: an upload, or a folder or file below one of the image roots."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from pydantic import model_validator

from lifelong_core.configuration.image_roots import find_root
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import ConfigurationError, InvalidInputError

ImageSource: TypeAlias = Any
"""`lifelong_core.develop.features.sources.entry.ImageSource`"""


class ImageLocation(FrozenDocument):
    """Images as an upload or by their path."""

    upload: str | None = None
    """digest of the artifact"""
    archive: Literal["tar", "tar.gz", "zip"] | None = None
    """form of the upload"""
    path: str | None = None
    """folder or file below one of `image_roots`"""

    @model_validator(mode="after")
    def _check_location(self) -> "ImageLocation":
        if (self.upload is None) == (self.path is None) or (self.upload is None) != (self.archive is None):
            raise ValueError("expected either a path, or an upload and its form")
        return self


@contextmanager
def images_of(
    store: Store, settings: Settings, location: ImageLocation, *, labelled: bool = True
) -> Generator[ImageSource, None, None]:
    """The source of the images; nothing of an upload is unpacked to the disk.

    Raises:
        ConfigurationError: torch or another library is not installed.
        InvalidInputError: the path is outside of `image_roots`, or holds no images; or the upload was deleted.
    """
    if location.path is not None:
        yield images_at(settings, location.path, labelled=labelled)
        return
    open_images = develop_module("features.sources.opening").open_images
    with (
        TemporaryDirectory(prefix="lifelong-") as folder,
        _open_upload(store, location.upload or "") as number,
    ):
        # Archives are told by their names.
        link = Path(folder) / f"upload.{location.archive}"
        link.symlink_to(f"/dev/fd/{number}")
        yield open_images(link, labelled=labelled)


def images_at(settings: Settings, path: str, *, labelled: bool = True) -> ImageSource:
    """The source of the images at a path below one of the image roots; errors as of `images_of`."""
    root = find_root(path, settings.image_roots)
    return develop_module("features.sources.opening").open_images(path, labelled=labelled, within=root)


@contextmanager
def _open_upload(store: Store, digest: str) -> Generator[int, None, None]:
    """The descriptor of the uploaded archive."""
    if not store.artifacts.has(digest):
        raise InvalidInputError("the upload was deleted.", field="upload", hint="Send the images again.")
    with store.artifacts.open(digest) as file:
        yield file.fileno()


def develop_module(module: str) -> Any:
    """A module of `lifelong_core.develop`; imported by name, because only a job's process may load torch.

    Raises:
        ConfigurationError: torch or another library is not installed.
    """
    try:
        return import_module(f"lifelong_core.develop.{module}")
    except ImportError as error:
        raise ConfigurationError(
            f"jobs cannot read images or train here: {error}.",
            field="develop",
            hint="Install the libraries where jobs run, in the clone of lifelong:"
            ' pip install -c constraints.txt -e ".[develop]".',
        ) from error
