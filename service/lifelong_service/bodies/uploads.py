"""Archives of images in a request: streamed to a file on the disk; a killed process leaves no file."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO, Literal, TypeAlias, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lifelong_core.values.errors import InvalidInputError, UnavailableError

ARCHIVE_TYPES = (
    "application/zip",
    "application/x-tar",
    "application/gzip",
    "application/x-gzip",
    "application/octet-stream",
)

Archive: TypeAlias = Literal["tar", "tar.gz", "zip"]

_WRITTEN_AT_ONCE = 2**20
_HEAD_BYTES = 512
"""A tar file has a header of this size."""
_TAR_MARK = slice(257, 262)


@asynccontextmanager
async def receive_file(request: Request, folder: Path) -> AsyncGenerator[BinaryIO, None]:
    """Yield the body of a request as an unnamed file, which ends with the block.

    Args:
        request: its body is within the limits of its route.
        folder: on the disk that takes it.

    Raises:
        UnavailableError: the disk cannot take it.
    """
    # Without a buffer: what a full disk refuses would be written again when the file is closed.
    with TemporaryFile(dir=folder, buffering=0) as file:
        held = bytearray()
        async with aclosing(request.stream()) as stream:
            async for part in stream:
                held += part
                if len(held) >= _WRITTEN_AT_ONCE:
                    # In a thread: a slow disk must not stop the predictions.
                    await run_in_threadpool(_write, file, bytes(held))
                    held.clear()
        await run_in_threadpool(_write, file, bytes(held))
        yield cast("BinaryIO", file)


def _write(file: IO[bytes], content: bytes) -> None:
    left = memoryview(content)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise UnavailableError(
            f"the disk of the service cannot take the upload: {error.strerror}.",
            field="body",
            hint="Make room in LIFELONG_DATA_DIRECTORY, or give the images by their path.",
        ) from error


def archive_form(file: BinaryIO) -> Archive:
    """The form of an archive by its first bytes.

    Raises:
        InvalidInputError: it is neither a tar nor a zip file.
    """
    file.seek(0)
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(b"\x1f\x8b"):
        return "tar.gz"
    if head[_TAR_MARK] == b"ustar":
        return "tar"
    raise InvalidInputError(
        "the body is neither a tar nor a zip file.",
        field="body",
        hint="Send the archive itself as the body: curl --data-binary @images.zip.",
    )
