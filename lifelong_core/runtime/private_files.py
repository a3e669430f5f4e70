"""The files and folders of an installation on this machine, and their access rights."""

import os
from collections.abc import Iterator
from pathlib import Path

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.files import is_accessible_to_others, restrict
from lifelong_core.store.artifacts import local_folder
from lifelong_core.store.engine.database import parse_url
from lifelong_core.store.engine.errors import sqlite_file

_SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
_IN_DATA_DIRECTORY = (
    "lifelong.db*",
    "audit.anchor*",
    "group.key*",
    "signing.key*",
    "registry.json*",
    "artifacts",
    "artifact-cache",
    "spool",
    "bentoml",
    "knowledge-index",
    "tensorrt",
    "tmp",
)
"""What the product keeps there by default; a folder that holds nothing else is its own."""
_ARTIFACTS = ("[0-9a-f][0-9a-f]",)


def local_artifacts(settings: Settings) -> Path | None:
    """The folder of the artifacts; None where they are in object storage."""
    return local_folder(settings.resolved_artifacts_url)


def database_file(settings: Settings) -> Path | None:
    """The file of a SQLite database; None for PostgreSQL."""
    return sqlite_file(parse_url(settings.resolved_database_url))


def absolute(path: Path) -> Path:
    """The one path of a file, whichever setting names it; a link stays a link."""
    return path.parent.resolve() / path.name


def find_accessible(settings: Settings) -> list[Path]:
    """Files and folders of the installation that group or others may use, sorted.

    Where settings name a folder that holds other things as well, only those that the product writes count.
    """
    return sorted({absolute(path) for path in _installed_paths(settings) if is_accessible_to_others(path)})


def restrict_installation(settings: Settings) -> tuple[int, list[Path]]:
    """Remove the rights of group and others from all that `find_accessible` returns.

    Returns:
        The number of changed files, and the files that this user does not own.
    """
    found = find_accessible(settings)
    foreign: list[Path] = []
    for path in found:
        try:
            restrict(path)
        except FileNotFoundError:  # a file of the spool that was delivered meanwhile
            continue
        except OSError:
            foreign.append(path)
    return len(found) - len(foreign), foreign


def _installed_paths(settings: Settings) -> Iterator[Path]:
    yield from _own_paths(settings.data_directory, _IN_DATA_DIRECTORY)
    yield from _with_content(settings.resolved_spool_directory)
    for key_file in (settings.resolved_group_key_file, settings.resolved_signing_key_file):
        yield key_file
        yield from key_file.parent.glob(f"{key_file.name}.*")
    yield from settings.notifications.secret_files
    database, artifacts = database_file(settings), local_artifacts(settings)
    if database is not None:
        yield from (database.with_name(f"{database.name}{suffix}") for suffix in _SQLITE_SUFFIXES)
    if artifacts is not None:
        yield from _own_paths(artifacts, _ARTIFACTS)


def _own_paths(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    """What matches, with its content; and the folder where it holds nothing else."""
    if not folder.is_dir():
        return
    own = {path for pattern in patterns for path in folder.glob(pattern)}
    if own.issuperset(folder.iterdir()):
        yield folder
    for path in own:
        yield from _with_content(path)


def _with_content(path: Path) -> Iterator[Path]:
    yield path
    if path.is_symlink():
        return
    for folder, folders, files in os.walk(path):
        yield from (Path(folder, name) for name in (*folders, *files))
