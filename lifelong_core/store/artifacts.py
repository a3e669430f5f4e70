"""Content-addressed files (ONNX graphs, calibration sets) in a folder or in object storage, behind fsspec."""

import hashlib
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from fsspec.core import url_to_fs  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from lifelong_core.errors import ConfigurationError, InvalidInputError, NotFoundError, UnavailableError
from lifelong_core.redaction import redact
from lifelong_core.store.files import write_whole

_FIELD = "LIFELONG_ARTIFACTS_URL"


class DamagedArtifactError(UnavailableError):
    """The storage has other bytes under a digest than were put."""


class Artifacts:
    """Puts and gets bytes by their SHA-256; what was put never changes.

    Args:
        url: `file:///folder`, or any URL that fsspec knows (`s3://bucket/folder`).
        cache: folder for local copies of remote artifacts; None: the user's cache folder.

    Raises:
        ConfigurationError: fsspec does not know the URL, or the package for it is not installed.
    """

    def __init__(self, url: str, *, cache: Path | None = None) -> None:
        try:
            opened = cast("tuple[Any, str]", url_to_fs(url))
        except (
            Exception
        ) as error:  # what a driver of fsspec raises is up to its authors, some connect at once
            said = str(error).rstrip(".") or type(error).__name__
            raise ConfigurationError(
                f"artifacts cannot be kept at {redact(url)!r}: {redact(said)}.",
                field=_FIELD,
                hint="Use file:///folder or s3://...",
            ) from error
        self._files, root = opened
        self._root = root.rstrip("/")
        self._place_shown = redact(self._root)
        self._is_local = "file" in _protocols(self._files)
        self._cache = cache or _default_cache()

    def put(self, content: bytes) -> str:
        """Keep the bytes; returns their digest (SHA-256, hex). Putting them again changes nothing.

        Raises:
            UnavailableError: the storage cannot be written.
        """
        digest = digest_of(content)
        place = self._place(digest)
        try:
            if not self._is_whole(place, digest):
                self._write(place, content)
        except OSError as error:
            raise UnavailableError(
                f"the artifact storage {self._place_shown} cannot be written: {redact(str(error))}.",
                field=_FIELD,
            ) from error
        return digest

    def _write(self, place: str, content: bytes) -> None:
        """A reader finds the whole artifact or none; on a local disk it survives a power failure."""
        if self._is_local:
            write_whole(Path(place), content)
            return
        draft = f"{place}.{secrets.token_hex(8)}"
        self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
        self._files.pipe_file(draft, content)
        self._files.mv(draft, place)

    def _is_whole(self, place: str, digest: str) -> bool:
        """Whether the bytes are there already; damaged ones are repaired by putting them again."""
        return self._files.exists(place) and digest_of(self._files.cat_file(place)) == digest

    def has(self, digest: str) -> bool:
        """Whether there are bytes under that digest; whether they are whole, `get` finds out.

        Raises:
            UnavailableError: the storage cannot be read.
        """
        try:
            return bool(self._files.exists(self._place(digest)))
        except OSError as error:
            raise UnavailableError(
                f"the artifact storage {self._place_shown} cannot be read: {redact(str(error))}.",
                field=_FIELD,
            ) from error

    def get(self, digest: str) -> bytes:
        """The bytes of that digest.

        Raises:
            NotFoundError: there are none.
            DamagedArtifactError: the storage has other bytes than were put.
            UnavailableError: the storage cannot be read.
        """
        place = self._place(digest)
        try:
            content: bytes = self._files.cat_file(place)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"the artifact {digest} is not in {self._place_shown}.", hint="Bring it back from the backup."
            ) from error
        except OSError as error:
            raise UnavailableError(
                f"the artifact storage {self._place_shown} cannot be read: {redact(str(error))}.",
                field=_FIELD,
            ) from error
        return _verified(content, digest, place)

    def remove(self, digest: str) -> None:
        """Delete the bytes of that digest, if there are any. Nobody may need them: the same bytes are kept once.

        Raises:
            UnavailableError: the storage cannot be written.
        """
        try:
            with suppress(FileNotFoundError):
                self._files.rm_file(self._place(digest))
        except OSError as error:
            raise UnavailableError(
                f"the artifact storage {self._place_shown} cannot be written: {redact(str(error))}.",
                field=_FIELD,
            ) from error

    def path(self, digest: str) -> Path:
        """A local file with the bytes of that digest; remote ones are downloaded once.

        Raises:
            NotFoundError: there are none.
            DamagedArtifactError: the storage has other bytes than were put.
            UnavailableError: the storage cannot be read.
        """
        if self._is_local:
            self.get(digest)
            return Path(self._place(digest))
        copy = self._cache / digest
        if not (copy.is_file() and digest_of(copy.read_bytes()) == digest):
            _write_copy(copy, self.get(digest))
        return copy

    def _place(self, digest: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise InvalidInputError(f"{digest[:80]!r} is not a SHA-256 in hexadecimal.", field="digest")
        return f"{self._root}/{digest[:2]}/{digest}"


def digest_of(content: bytes) -> str:
    """By what an artifact is known: SHA-256 (hex)."""
    return hashlib.sha256(content).hexdigest()


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol: str | tuple[str, ...] = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else protocol


def _default_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "lifelong" / "artifacts"


def _verified(content: bytes, digest: str, place: str) -> bytes:
    if digest_of(content) != digest:
        raise DamagedArtifactError(
            f"the artifact {redact(place)} has other bytes than were put.",
            hint="Bring it back from the backup.",
        )
    return content


def _write_copy(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise UnavailableError(
            f"the artifact cache {path.parent} cannot be written: {redact(str(error))}."
        ) from error
