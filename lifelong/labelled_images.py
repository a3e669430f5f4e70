"""A folder of labelled images: one sub-folder per class; other entries are refused by name."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lifelong_core.images import IMAGE_SUFFIXES
from lifelong_core.values.class_labels import composed
from lifelong_core.values.errors import InvalidInputError

_RUBBISH = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini"})
"""What archives and desktops leave behind; names that begin with a full stop are passed over, too."""
_MOST_NAMES = 5
_LEAST_LIKENESS = 0.6
"""of a folder that is offered for a class, by difflib: one wrong letter of three is 0.67"""


@dataclass(frozen=True)
class LabelledImages:
    """Image files with their classes."""

    folder: Path
    files: tuple[Path, ...]
    labels: tuple[int, ...]
    """class indices, one per file"""

    @property
    def names(self) -> tuple[str, ...]:
        """The files' paths within the folder, `class/file`."""
        return tuple(path.relative_to(self.folder).as_posix() for path in self.files)


def labelled_images(
    folder: Path, class_names: Sequence[str], *, leave_out: Sequence[str] = ()
) -> LabelledImages:
    """Image files in one sub-folder per class.

    Args:
        folder: what holds the sub-folders.
        class_names: names of the sub-folders.
        leave_out: names of further entries of the folder that are not meant.

    Raises:
        InvalidInputError: a class has no folder or no image, or there are folders and files that would be ignored.
    """
    left_out = {composed(name) for name in leave_out}
    entries = [path for path in _visible(folder) if composed(path.name) not in left_out]
    _check_entries(folder, entries, [composed(name) for name in class_names])
    folders = {composed(path.name): path for path in entries if path.is_dir()}
    files: list[Path] = []
    labels: list[int] = []
    for index, name in enumerate(class_names):
        members = _images(folders[composed(name)])
        files += members
        labels += [index] * len(members)
    return LabelledImages(folder, tuple(files), tuple(labels))


def _check_entries(folder: Path, entries: Sequence[Path], class_names: Sequence[str]) -> None:
    folders = [composed(path.name) for path in entries if path.is_dir()]
    twice = [name for name in folders if folders.count(name) > 1]
    if twice:
        raise InvalidInputError(
            f"{folder} has two sub-folders {twice[0]}, in two forms of Unicode (NFC and NFD).",
            field="folder",
            hint="Move the images of both into one.",
        )
    unknown = [name for name in folders if name not in class_names]
    missing = [name for name in class_names if name not in folders]
    if missing:
        near = _near_matches(missing, unknown)
        if near:
            renamed = ", ".join(f"{match} to {name}" for name, match in near.items())
            hint = f"Did you mean {', '.join(near.values())}? Rename {renamed}."
        else:
            hint = f"Make one sub-folder per class, named {', '.join(class_names)}."
        raise InvalidInputError(
            f"{folder} has no sub-folder for the {'class' if len(missing) == 1 else 'classes'} {_listed(missing)}"
            + (f"; it has {_listed(folders)}" if folders else "")
            + (f", where no class of the task is named {_listed(unknown)}." if unknown else "."),
            field="folder",
            hint=hint,
        )
    if unknown:
        raise InvalidInputError(
            f"{folder} has sub-folders that are no class of the task: {_listed(unknown)}.",
            field="folder",
            hint=f"Leave them out with {' '.join(f'--leave-out {name!r}' for name in unknown[:_MOST_NAMES])}, "
            "or move their images into the folders of their classes.",
        )
    loose = [path.name for path in entries if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file()]
    if loose:
        raise InvalidInputError(
            f"{folder} holds images that are in no class folder: {_listed(loose)}.",
            field="folder",
            hint="Move them into the folders of their classes, or out of this folder.",
        )


def _images(folder: Path) -> list[Path]:
    """The images of one class.

    Raises:
        InvalidInputError: there is none, or there are files or folders that are no images.
    """
    entries = _visible(folder)
    nested = [path.name for path in entries if path.is_dir()]
    if nested:
        raise InvalidInputError(
            f"{folder} holds sub-folders: {_listed(nested)}.",
            field="folder",
            hint=f"Move their images up into {folder}; to keep which belong together, use --groups.",
        )
    other = [path.name for path in entries if path.suffix.lower() not in IMAGE_SUFFIXES]
    if other:
        raise InvalidInputError(
            f"{folder} holds files that are no images: {_listed(other)}.",
            field="folder",
            hint=f"Move them out of the folder. Images end in {', '.join(sorted(IMAGE_SUFFIXES))}.",
        )
    if not entries:
        raise InvalidInputError(
            f"{folder} holds no image.", field="folder", hint="Every class needs labelled images."
        )
    return entries


def _visible(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidInputError(f"{folder} cannot be read ({error.strerror}).", field="folder") from error
    return [path for path in entries if not path.name.startswith(".") and path.name not in _RUBBISH]


def _near_matches(missing: Sequence[str], unknown: Sequence[str]) -> dict[str, str]:
    """Folders that are nearly named like a missing class, by class; a folder is offered once."""
    left = list(unknown)
    near: dict[str, str] = {}
    for name in missing:
        match = _near_match(name, left)
        if match is not None:
            near[name] = match
            left.remove(match)
    return near


def _near_match(name: str, candidates: Sequence[str]) -> str | None:
    """The candidate that differs in case, spaces, hyphens or little else."""
    plain = {_plain(candidate): candidate for candidate in candidates}
    if _plain(name) in plain:
        return plain[_plain(name)]
    found = difflib.get_close_matches(_plain(name), list(plain), n=1, cutoff=_LEAST_LIKENESS)
    return plain[found[0]] if found else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_.-]+", "", name.casefold())


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
