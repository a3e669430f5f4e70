"""The registry as a local file; a worker that starts while the database is unavailable serves from it."""

import hashlib
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from lifelong_core.deploy.documents import canonical, parse_document
from lifelong_core.entities.registry import Registry
from lifelong_core.store.engine.database import database_origin
from lifelong_core.store.files import write_whole
from lifelong_core.store.registry.documents import registry_document, registry_from
from lifelong_core.values.errors import LifelongError, UnavailableError

SCHEMA_VERSION = 1
_LEFTOVER_SECONDS = 3600
"""Drafts older than this belong to a killed writer."""


class RegistryCache:
    """A file with one registry and a checksum; all processes on one data directory share it.

    The file holds hashes of tokens, never a secret; only its owner may read it.

    Args:
        path: of the file.
        database_url: of the registry's database; a file of another database is refused.
    """

    def __init__(self, path: Path, *, database_url: str) -> None:
        self.path = path
        self._database_url = database_url

    def save(self, registry: Registry) -> None:
        """Replace the stored registry atomically.

        Raises:
            UnavailableError: the file cannot be written.
        """
        content = {"origin": database_origin(self._database_url), "registry": registry_document(registry)}
        document = {"schema_version": SCHEMA_VERSION, "checksum": _checksum(content), **content}
        try:
            write_whole(self.path, canonical(document).encode())
            self._sweep()
        except OSError as error:
            raise UnavailableError(
                f"the registry cache {self.path} cannot be written: {error.strerror or error}."
            ) from error

    def load(self) -> Registry | None:
        """The registry that was saved last; None if there is none.

        Raises:
            UnavailableError: the file cannot be read, is damaged, or belongs to another version or database.
        """
        content = self._content()
        if content is None:
            return None
        try:
            return registry_from(content["registry"])
        except (LifelongError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise self._refused(f"holds what is no registry ({error})") from error

    def revision(self) -> int | None:
        """The revision of the registry that was saved last; None if there is none.

        Raises:
            UnavailableError: as `load`, but the content of the registry is not checked.
        """
        content = self._content()
        return None if content is None else content["registry"]["revision"]

    def _content(self) -> dict[str, Any] | None:
        try:
            text = self.path.read_text()
            document = parse_document(text, field="cache")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(f"cannot be read: {error.strerror or error}") from error
        except (LifelongError, UnicodeDecodeError) as error:
            raise self._refused("is damaged: it is not a JSON document") from error
        version, checksum = document.pop("schema_version", None), document.pop("checksum", None)
        if version != SCHEMA_VERSION:
            raise self._refused(f"has the schema version {version}, expected {SCHEMA_VERSION}")
        if checksum != _checksum(document):
            raise self._refused("is damaged: its checksum is another one")
        if document["origin"] != database_origin(self._database_url):
            raise self._refused("is that of another database")
        return document

    def _refused(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"the registry cache {self.path} {reason}.",
            hint="It is written anew when the database answers.",
        )

    def _sweep(self) -> None:
        for draft in self.path.parent.glob(f"{self.path.name}.*"):
            with suppress(FileNotFoundError):  # another process has finished or deleted it
                if time.time() - draft.stat().st_mtime > _LEFTOVER_SECONDS:
                    draft.unlink()


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()
