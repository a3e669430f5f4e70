"""Content-addressed files (ONNX graphs, calibration sets) in a folder or in object storage, behind fsspec."""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Literal, cast

from fsspec.core import split_protocol, url_to_fs  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from fsspec.implementations.local import LocalFileSystem  # pyright: ignore[reportMissingTypeStubs]

from lifelong_core.runtime.redaction import redact
from lifelong_core.store.files import write_new, write_whole
from lifelong_core.values.errors import ConfigurationError, InvalidInputError, NotFoundError, UnavailableError

_FIELD = "LIFELONG_ARTIFACTS_URL"
_CHUNK = 2**20
"""Bytes that are copied at once."""


class DamagedArtifactError(UnavailableError):
    """The storage has other bytes under a digest than were put."""


class Artifacts:
    """Stores bytes by their SHA-256; stored bytes never change.

    Args:
        url: `file:///folder`, or any URL that fsspec supports (`s3://bucket/folder`).
        cache: folder for local copies of remote artifacts; None: the user's cache folder.

    Raises:
        ConfigurationError: fsspec does not support the URL, or the package for it is not installed.
    """

    def __init__(self, url: str, *, cache: Path | None = None) -> None:
        try:
            folder = local_folder(url)
            opened = cast("tuple[Any, str]", (LocalFileSystem(), str(folder)) if folder else url_to_fs(url))
        except Exception as error:  # drivers of fsspec raise any kind of error, and some connect at once
            said = str(error).rstrip(".") or type(error).__name__
            raise ConfigurationError(
                f"artifacts cannot be kept at {redact(url)!r}: {redact(said)}.",
                field=_FIELD,
                hint="Use file:///folder or s3://...",
            ) from error
        self._files, root = opened
        self._root = root.rstrip("/")
        self._shown_root = redact(self._root)
        self._is_local = "file" in _protocols(self._files)
        self._cache = cache

    def put(self, content: bytes) -> str:
        """Store the bytes and return their digest (SHA-256, hex); harmless to repeat.

        Raises:
            UnavailableError: the storage cannot be written.
        """
        return self.put_file(BytesIO(content))

    def put_file(self, file: BinaryIO) -> str:
        """Store the bytes of a seekable file, whatever their size, and return their digest; harmless to repeat.

        Raises:
            UnavailableError: the storage cannot be written.
        """
        digest = digest_of_file(file)
        location = self._location(digest)
        with self._explain_errors("written"):
            if not self._is_whole(location, digest):
                self._write(location, file)
        return digest

    @contextmanager
    def _explain_errors(self, action: Literal["read", "written"]) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            raise UnavailableError(
                f"the artifact storage {self._shown_root} cannot be {action}: {redact(str(error))}.",
                field=_FIELD,
            ) from error

    def _write(self, location: str, content: BinaryIO) -> None:
        """Write an artifact atomically; on a local disk it survives a power failure."""
        if self._is_local:
            with write_new(Path(location)) as file:
                shutil.copyfileobj(content, file, _CHUNK)
            return
        draft = f"{location}.{secrets.token_hex(8)}"
        self._files.makedirs(location.rpartition("/")[0], exist_ok=True)
        with self._files.open(draft, "wb") as file:
            shutil.copyfileobj(content, file, _CHUNK)
        self._files.mv(draft, location)

    def _is_whole(self, location: str, digest: str) -> bool:
        """Whether the undamaged bytes are stored already; another `put` repairs damaged ones."""
        if not self._files.exists(location):
            return False
        with self._files.open(location, "rb") as file:
            return digest_of_file(file) == digest

    def has(self, digest: str) -> bool:
        """Whether bytes are stored under that digest; only `get` checks them for damage.

        Raises:
            UnavailableError: the storage cannot be read.
        """
        with self._explain_errors("read"):
            return bool(self._files.exists(self._location(digest)))

    def get(self, digest: str) -> bytes:
        """The bytes of that digest.

        Raises:
            NotFoundError: there are none.
            DamagedArtifactError: the stored bytes do not match the digest.
            UnavailableError: the storage cannot be read.
        """
        location = self._location(digest)
        with self._explain_errors("read"):
            try:
                content: bytes = self._files.cat_file(location)
            except FileNotFoundError as error:
                raise self._not_found(digest) from error
        return _verified(content, digest, location)

    @contextmanager
    def open(self, digest: str) -> Generator[BinaryIO, None, None]:
        """Open the bytes of that digest as a file of the local disk; a copy of remote ones ends with the block.

        Raises:
            NotFoundError: there are none.
            DamagedArtifactError: the stored bytes do not match the digest.
            UnavailableError: the storage cannot be read.
        """
        location = self._location(digest)
        with ExitStack() as closing:
            with self._explain_errors("read"):
                try:
                    file = cast("BinaryIO", closing.enter_context(self._files.open(location, "rb")))
                except FileNotFoundError as error:
                    raise self._not_found(digest) from error
                if not self._is_local:
                    copy = closing.enter_context(TemporaryFile())
                    shutil.copyfileobj(file, copy, _CHUNK)
                    file = cast("BinaryIO", copy)
                if digest_of_file(file) != digest:
                    raise _damaged(location)
            yield file

    def _not_found(self, digest: str) -> NotFoundError:
        return NotFoundError(
            f"the artifact {digest} is not in {self._shown_root}.", hint="Restore it from a backup."
        )

    def remove(self, digest: str) -> None:
        """Delete the bytes of that digest, if any. They must be unused: equal bytes are stored once.

        Raises:
            UnavailableError: the storage cannot be written.
        """
        with self._explain_errors("written"), suppress(FileNotFoundError):
            self._files.rm_file(self._location(digest))

    def path(self, digest: str) -> Path:
        """A local file with the bytes of that digest; remote ones are downloaded once.

        Raises:
            NotFoundError: there are none.
            DamagedArtifactError: the stored bytes do not match the digest.
            UnavailableError: the storage cannot be read.
        """
        if self._is_local:
            with self.open(digest):  # checks the bytes, and holds few of them in memory
                return Path(self._location(digest))
        copy = (self._cache or _default_cache()) / digest
        if not (copy.is_file() and digest_of(copy.read_bytes()) == digest):
            _write_copy(copy, self.get(digest))
        return copy

    def _location(self, digest: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise InvalidInputError(f"{digest[:80]!r} is not a SHA-256 in hexadecimal.", field="digest")
        return f"{self._root}/{digest[:2]}/{digest}"


def local_folder(url: str) -> Path | None:
    """The folder of a URL of local artifacts; None: they are elsewhere. Its path may hold any character."""
    protocol, folder = cast("tuple[str | None, str]", split_protocol(url))
    return Path(folder).expanduser().absolute() if protocol in (None, "file", "local") else None


def digest_of(content: bytes) -> str:
    """The digest of an artifact: SHA-256 (hex)."""
    return hashlib.sha256(content).hexdigest()


def digest_of_file(file: BinaryIO) -> str:
    """The digest of an artifact that a seekable file holds; its position is at the beginning afterwards."""
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol: str | tuple[str, ...] = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else protocol


def _default_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "lifelong" / "artifacts"


def _verified(content: bytes, digest: str, location: str) -> bytes:
    if digest_of(content) != digest:
        raise _damaged(location)
    return content


def _damaged(location: str) -> DamagedArtifactError:
    return DamagedArtifactError(
        f"the artifact {redact(location)} has other bytes than were put.", hint="Restore it from a backup."
    )


def _write_copy(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise UnavailableError(
            f"the artifact cache {path.parent} cannot be written: {redact(str(error))}."
        ) from error
