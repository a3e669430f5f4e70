"""Which folders' images jobs and plans may read by their path."""

import stat
from collections.abc import Sequence
from pathlib import Path

from lifelong_core.values.errors import InvalidInputError


def find_root(path: str, roots: Sequence[Path], *, field: str = "path") -> Path:
    """The root that a path lies below, as it is written and with its symbolic links resolved on this machine.

    The path need not exist here: the images may lie on the machine that runs jobs, which looks again.

    Args:
        path: absolute, without `..`.
        roots: permitted folders, the setting `image_roots`.
        field: that an error names.

    Raises:
        InvalidInputError: it is not absolute, has `..`, lies below no root, or a link leads out of its root.

    Examples:
        >>> find_root("/data/images/lesions", [Path("/data/images")]).as_posix()
        '/data/images'
    """
    asked = Path(path)
    if not asked.is_absolute() or ".." in asked.parts or "\0" in path:
        raise InvalidInputError(
            f"expected an absolute path without '..', got {path[:200]!r}.", field=field, hint=_hint(roots)
        )
    for root in roots:
        absolute = root.absolute()
        if asked.is_relative_to(absolute):
            resolve_within(asked, absolute, field=field, strict=False)
            return absolute
    raise InvalidInputError(f"{path[:200]!r} lies in no permitted folder.", field=field, hint=_hint(roots))


def resolve_within(path: Path, within: Path | None, *, field: str = "images", strict: bool = True) -> Path:
    """The path to open: what reads images by their path asks here first.

    Args:
        path: of a file or folder.
        within: the folder that it must lie in, once the symbolic links of both are resolved; None: anywhere, and no
            link is resolved.
        field: that an error names.
        strict: whether it must exist.

    Raises:
        InvalidInputError: it lies outside `within`, or, if strict, it cannot be read, or is no regular file and no
            folder: a pipe would be waited for, a device may have no end.
    """
    shown = str(path)[:200]
    try:
        real = path if within is None else path.resolve()
        is_inside = within is None or real.is_relative_to(within.resolve())
        mode = real.stat().st_mode if strict and is_inside else stat.S_IFREG
    except FileNotFoundError as error:
        raise InvalidInputError(f"there is no file or folder {shown}.", field=field) from error
    except OSError as error:
        raise InvalidInputError(f"{shown} cannot be read ({error.strerror}).", field=field) from error
    except (RuntimeError, ValueError) as error:  # a loop of symbolic links, a null character
        raise InvalidInputError(f"{shown} leads to no file.", field=field) from error
    if not is_inside:
        raise InvalidInputError(f"{shown} lies outside {within}.", field=field)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InvalidInputError(f"{shown} is no regular file and no folder.", field=field)
    return real


def _hint(roots: Sequence[Path]) -> str:
    if not roots:
        return "The setting LIFELONG_IMAGE_ROOTS names no folder: send the images as a tar or zip file."
    return f"Permitted folders: {', '.join(map(str, roots))}."
