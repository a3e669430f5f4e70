"""The registry as JSON values, and back; the round trip keeps every number exactly."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from lifelong_core.entities.access import Token
from lifelong_core.entities.entity import document_of
from lifelong_core.entities.heads import HeadPin, HeadPopulation, HeadRecord
from lifelong_core.entities.registry import Model, Registry, Task
from lifelong_core.entities.rollouts import Rollout
from lifelong_core.values.errors import InvalidInputError

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
