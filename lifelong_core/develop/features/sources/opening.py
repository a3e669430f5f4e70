"""The source of the images at one or more paths."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from lifelong_core.configuration.image_roots import resolve_within
from lifelong_core.develop.features.sources.entry import (
    TAR_SUFFIXES,
    ZIP_SUFFIXES,
    Entry,
    ImageSource,
    Opened,
    is_archive,
)
from lifelong_core.develop.features.sources.folder import FolderSource, TableSource, walk_files
from lifelong_core.develop.features.sources.limits import DEFAULT_LIMITS, Limits
from lifelong_core.develop.features.sources.tar_files import TarSource
from lifelong_core.develop.features.sources.zip_files import ZipSource
from lifelong_core.values.errors import InvalidInputError

_FIELD = "images"


def open_images(
    *paths: str | Path, labelled: bool = True, within: Path | None = None, limits: Limits = DEFAULT_LIMITS
) -> ImageSource:
    """Return the images at these paths as one source.

    Args:
        paths: folders (images, DICOM files and archives in them, recursively), CSV files with the columns `path` and
            `label`, tar files (webdataset's included), zip files.
        labelled: whether sub-folders, CSV column and webdataset's labels are classes.
        within: all files must lie in this folder once symbolic links are resolved; None: anywhere.
        limits: of archives and their files.

    Raises:
        InvalidInputError: no path, one that does not exist or lies outside `within`, or one of another kind.
    """
    if not paths:
        raise InvalidInputError("expected at least one path.", field=_FIELD)
    parts: list[tuple[Path, ImageSource]] = []
    for path in map(Path, paths):
        resolve_within(path, within)
        for found in _parts(path):
            resolve_within(found, within)
            parts.append((found, _source(found, labelled=labelled, within=within, limits=limits)))
    if len(parts) == 1:
        return parts[0][1]
    return CombinedSource(
        list(zip(_names([path for path, _ in parts]), (source for _, source in parts), strict=True))
    )


def _parts(path: Path) -> Iterator[Path]:
    """The path itself, and the archives in a folder; a folder of nothing but archives is left out."""
    if not path.is_dir():
        yield path
        return
    archives: list[Path] = []
    has_others = False
    for file in walk_files(path):
        if is_archive(PurePosixPath(file.name)):
            archives.append(file)
        else:
            has_others = True
    if has_others or not archives:
        yield path
    yield from sorted(archives)


def _source(path: Path, *, labelled: bool, within: Path | None, limits: Limits) -> ImageSource:
    name = path.name.lower()
    if path.is_dir():
        return FolderSource(path, labelled=labelled, within=within)
    if name.endswith(".csv"):
        return TableSource(path, labelled=labelled, within=within)
    if name.endswith(TAR_SUFFIXES):
        return TarSource(path, labelled=labelled, limits=limits)
    if name.endswith(ZIP_SUFFIXES):
        return ZipSource(path, labelled=labelled, limits=limits)
    raise InvalidInputError(
        f"{path} is no folder, CSV, tar or zip file.", field=_FIELD, hint="Give the folder of the images."
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """A name for each path: its last part, or all of it where several have the same last part."""
    count = Counter(path.name for path in paths)
    names = [path.name if count[path.name] == 1 else path.as_posix() for path in paths]
    if len(set(names)) < len(names):
        raise InvalidInputError("the same path is given twice.", field=_FIELD)
    return [name.replace(":", "_") for name in names]


class CombinedSource:
    """Several sources, each under its own name; the names begin the paths of the entries.

    Args:
        sources: by name, each name once.
    """

    def __init__(self, sources: Sequence[tuple[str, ImageSource]]) -> None:
        self._sources = dict(sources)

    def entries(self) -> Iterator[Entry | None]:
        """The images of all sources; None for each other file."""
        for name, source in self._sources.items():
            for entry in source.entries():
                yield None if entry is None else replace(entry, path=f"{name}:{entry.path}")

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Open the files source by source."""
        parts: dict[str, dict[Entry, Entry]] = defaultdict(dict)
        for entry in wanted:
            name, _, path = entry.path.partition(":")
            parts[name][replace(entry, path=path)] = entry
        for name, source in self._sources.items():
            if name in parts:
                for entry, opened in source.read(parts[name]):
                    yield parts[name][entry], opened
