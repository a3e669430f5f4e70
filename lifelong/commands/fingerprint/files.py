"""Files of fingerprints, read and written with errors that name the option."""

from pathlib import Path

from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes
from lifelong_core.values.errors import InvalidInputError

LARGEST_FILE = 256 * 2**20


def read_fingerprint_file(file: Path) -> Fingerprint:
    """The fingerprint in a file.

    Raises:
        InvalidInputError: the file cannot be read, is too large, or holds no fingerprint.
    """
    try:
        return fingerprint_from_bytes(read_file(file))
    except InvalidInputError as error:
        hint = "Give a file that lifelong fingerprint make wrote."
        raise type(error)(f"{file}: {error.message}", field="FILE", hint=hint) from error


def read_extractor_file(file: Path) -> ExtractorReference:
    """The extractor reference in a file.

    Raises:
        InvalidInputError: the file cannot be read, is too large, or holds no reference.
    """
    try:
        return ExtractorReference.from_bytes(read_file(file))
    except InvalidInputError as error:
        hint = "Give a file that lifelong fingerprint extractor make wrote."
        raise type(error)(f"{file}: {error.message}", field="extractor", hint=hint) from error


def read_file(file: Path) -> bytes:
    """The content of a file of at most `LARGEST_FILE` bytes.

    Raises:
        InvalidInputError: it cannot be read, or is larger.
    """
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InvalidInputError(f"the file cannot be read ({error.strerror}).", field="FILE") from error
    if len(content) > LARGEST_FILE:
        raise InvalidInputError(f"the file has more than {LARGEST_FILE} bytes.", field="FILE")
    return content


def write_file(file: Path, content: bytes, *, replace: bool) -> None:
    """Write a file.

    Raises:
        InvalidInputError: it exists and is not to be replaced, or cannot be written.
    """
    try:
        with file.open("wb" if replace else "xb") as stream:
            stream.write(content)
    except FileExistsError as error:
        raise InvalidInputError(
            f"{file} exists already.", field="--output", hint="Give another name, or --replace."
        ) from error
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written ({error.strerror}).", field="--output") from error


def expect_writable(file: Path, *, replace: bool) -> None:
    """Refuse an output before hours of work.

    Raises:
        InvalidInputError: it exists and is not to be replaced, or its folder does not exist.
    """
    if file.exists() and not replace:
        raise InvalidInputError(
            f"{file} exists already.", field="--output", hint="Give another name, or --replace."
        )
    if not file.parent.is_dir():
        raise InvalidInputError(f"there is no folder {file.parent}.", field="--output")
