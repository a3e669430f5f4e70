"""The registry as a local file, exact to every number; a worker that starts while the database is unavailable serves
from it."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from lifelong_core.deploy.documents import canonical, parse_document
from lifelong_core.entities.access import Token
from lifelong_core.entities.develop.rollouts import Rollout
from lifelong_core.entities.entity import document_of
from lifelong_core.entities.heads import HeadPin, HeadPopulation, HeadRecord
from lifelong_core.entities.registry import Model, Registry, Task
from lifelong_core.store.engine.database import database_origin
from lifelong_core.store.files import write_whole
from lifelong_core.values.errors import InvalidInputError, LifelongError, UnavailableError

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


Value = TypeVar("Value")


def registry_document(registry: Registry) -> dict[str, Any]:
    """A registry as JSON values."""
    return {
        "revision": registry.revision,
        "tasks": [task.to_document() for task in registry.tasks.values()],
        "models": [model.to_document() for model in registry.models.values()],
        "heads": _by_population(registry.heads, _head_document),
        "environments": sorted(registry.environments),
        "pins": _by_population(registry.pins, HeadPin.to_document),
        "tokens": [_token_document(digest, token) for digest, token in registry.tokens.items()],
        "damaged": _by_population(registry.damaged, lambda reason: {"reason": reason}),
        "group_keys": list(registry.group_keys),
        "disabled_environments": sorted(registry.disabled_environments),
        "rollouts": [rollout.to_document() for rollout in registry.rollouts.values()],
        "rollback_models": [list(pair) for pair in registry.rollback_models.items()],
        "released": sorted(registry.released),
        "answering": [[task_id, sorted(models)] for task_id, models in registry.answering.items()],
        "preprocessing_digests": [list(pair) for pair in registry.preprocessing_digests.items()],
    }


def registry_from(document: Mapping[str, Any]) -> Registry:
    """The registry in a document of `registry_document`.

    Raises:
        InvalidInputError: the digest of a head is wrong.
        KeyError, TypeError, ValueError: the document has another form.
    """
    tasks = [Task.from_document(item) for item in document["tasks"]]
    models = [Model.from_document(item) for item in document["models"]]
    return Registry(
        revision=int(document["revision"]),
        tasks=MappingProxyType({task.id: task for task in tasks}),
        models=MappingProxyType({model.id: model for model in models}),
        heads=_from_populations(document["heads"], _head_from),
        environments=frozenset(document["environments"]),
        pins=_from_populations(document["pins"], HeadPin.from_document),
        tokens=MappingProxyType(dict(_token_from(item) for item in document["tokens"])),
        damaged=_from_populations(document["damaged"], lambda item: str(item["reason"])),
        group_keys=tuple(str(digest) for digest in document["group_keys"]),
        disabled_environments=frozenset(document["disabled_environments"]),
        rollouts=MappingProxyType(
            {rollout.task_id: rollout for rollout in map(Rollout.from_document, document["rollouts"])}
        ),
        rollback_models=MappingProxyType(dict(document["rollback_models"])),
        released=frozenset(document["released"]),
        answering=MappingProxyType({task_id: frozenset(models) for task_id, models in document["answering"]}),
        preprocessing_digests=MappingProxyType(dict(document["preprocessing_digests"])),
    )


def _by_population(
    values: Mapping[HeadPopulation, Value], document: Callable[[Value], dict[str, Any]]
) -> list[dict[str, Any]]:
    return [
        {**document(value), "model_id": model_id, "environment": environment}
        for (model_id, environment), value in values.items()
    ]


def _from_populations(
    items: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Value]
) -> MappingProxyType[HeadPopulation, Value]:
    return MappingProxyType({(item["model_id"], item["environment"]): read(item) for item in items})


def _head_document(record: HeadRecord) -> dict[str, Any]:
    # The digest shows whether the file holds the head that was published.
    return {**document_of(record, HeadRecord), "digest": record.head.digest}


def _head_from(item: Mapping[str, Any]) -> HeadRecord:
    record = HeadRecord.from_document(item)
    if record.head.digest != item["digest"]:
        raise InvalidInputError(f"head {record.version} has another digest than was written.", field="head")
    return record


def _token_document(digest: bytes, token: Token) -> dict[str, Any]:
    # The last use is not a part of the registry: the file would change with each request.
    return {**token.to_document(), "last_used_at": None, "secret_hash": digest.hex()}


def _token_from(item: Mapping[str, Any]) -> tuple[bytes, Token]:
    return bytes.fromhex(item["secret_hash"]), Token.from_document(item)
