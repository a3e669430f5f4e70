"""Which folders' images jobs may read by their path."""

from collections.abc import Sequence
from pathlib import Path

from lifelong_core.errors import InvalidInputError


def find_root(path: str, roots: Sequence[Path], *, field: str = "path") -> Path:
    """The root that a path lies below, by its text: the process that opens it resolves symbolic links and looks again.

    Args:
        path: absolute, without `..`.
        roots: permitted folders, the setting `image_roots`.
        field: that an error names.

    Raises:
        InvalidInputError: it is not absolute, has `..`, or lies below no root.

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
            return absolute
    raise InvalidInputError(f"{path[:200]!r} lies in no permitted folder.", field=field, hint=_hint(roots))


def _hint(roots: Sequence[Path]) -> str:
    if not roots:
        return "The setting LIFELONG_IMAGE_ROOTS names no folder: send the images as a tar or zip file."
    return f"Permitted folders: {', '.join(map(str, roots))}."
