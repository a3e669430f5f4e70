"""The registry as JSON values, and back; the round trip keeps every number exactly."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeVar

from lifelong_core.decision_rules.rules import rule_document, rule_from_document
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.entities.access import Scope, Token
from lifelong_core.entities.heads import HeadPin, HeadPopulation, HeadRecord
from lifelong_core.images.preprocessing import Preprocessing
from lifelong_core.store.engine.columns import unpack_floats
from lifelong_core.store.registry.records import Model, Registry, Task
from lifelong_core.store.rollouts.records import Rollout
from lifelong_core.values.errors import InvalidInputError

Value = TypeVar("Value")
_TOKEN_MOMENTS = ("expires_at", "rotated_at", "previous_expires_at")
_ROLLOUT_MOMENTS = ("started_at", "changed_at", "ended_at")


def registry_document(registry: Registry) -> dict[str, Any]:
    """A registry as JSON values."""
    return {
        "revision": registry.revision,
        "tasks": [_task_document(task) for task in registry.tasks.values()],
        "models": [_model_document(model) for model in registry.models.values()],
        "heads": _by_population(registry.heads, _head_document),
        "environments": sorted(registry.environments),
        "pins": _by_population(registry.pins, _pin_document),
        "tokens": [_token_document(digest, token) for digest, token in registry.tokens.items()],
        "damaged": _by_population(registry.damaged, lambda reason: {"reason": reason}),
        "group_keys": list(registry.group_keys),
        "disabled_environments": sorted(registry.disabled_environments),
        "rollouts": [_rollout_document(rollout) for rollout in registry.rollouts.values()],
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
    tasks = [_task_from(item) for item in document["tasks"]]
    models = [_model_from(item) for item in document["models"]]
    return Registry(
        revision=int(document["revision"]),
        tasks=MappingProxyType({task.id: task for task in tasks}),
        models=MappingProxyType({model.id: model for model in models}),
        heads=_from_populations(document["heads"], _head_from),
        environments=frozenset(document["environments"]),
        pins=_from_populations(document["pins"], _pin_from),
        tokens=MappingProxyType(dict(_token_from(item) for item in document["tokens"])),
        damaged=_from_populations(document["damaged"], lambda item: str(item["reason"])),
        group_keys=tuple(str(digest) for digest in document["group_keys"]),
        disabled_environments=frozenset(document["disabled_environments"]),
        rollouts=MappingProxyType(
            {rollout.task_id: rollout for rollout in map(_rollout_from, document["rollouts"])}
        ),
        rollback_models=MappingProxyType(dict(document["rollback_models"])),
        released=frozenset(document["released"]),
        answering=MappingProxyType({task_id: frozenset(models) for task_id, models in document["answering"]}),
        preprocessing_digests=MappingProxyType(dict(document["preprocessing_digests"])),
    )


def _by_population(
    values: Mapping[HeadPopulation, Value], document_of: Callable[[Value], dict[str, Any]]
) -> list[dict[str, Any]]:
    return [
        {"model_id": model_id, "environment": environment, **document_of(value)}
        for (model_id, environment), value in values.items()
    ]


def _from_populations(
    items: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Value]
) -> MappingProxyType[HeadPopulation, Value]:
    return MappingProxyType({(item["model_id"], item["environment"]): read(item) for item in items})


def _task_document(task: Task) -> dict[str, Any]:
    return {
        **vars(task),
        "class_names": list(task.class_names),
        "costs": task.costs.tolist(),
        "created_at": task.created_at.isoformat(),
        "decision_rule": rule_document(task.decision_rule),
    }


def _task_from(item: Mapping[str, Any]) -> Task:
    values: dict[str, Any] = {
        **item,
        "class_names": tuple(item["class_names"]),
        "costs": unpack_floats(item["costs"]),
        "created_at": _moment(item["created_at"]),
        "decision_rule": rule_from_document(item["decision_rule"]),
    }
    return Task(**values)


def _model_document(model: Model) -> dict[str, Any]:
    return {
        **vars(model),
        "preprocessing": None if model.preprocessing is None else model.preprocessing.model_dump(mode="json"),
        "created_at": model.created_at.isoformat(),
    }


def _model_from(item: Mapping[str, Any]) -> Model:
    preprocessing = item["preprocessing"]
    values: dict[str, Any] = {
        **item,
        "preprocessing": None if preprocessing is None else Preprocessing.model_validate(preprocessing),
        "created_at": _moment(item["created_at"]),
    }
    return Model(**values)


def _head_document(record: HeadRecord) -> dict[str, Any]:
    return {
        "version": record.version,
        "document": record.head.to_document(),
        "digest": record.head.digest,
        "created_at": record.created_at.isoformat(),
        "created_by": record.created_by,
    }


def _head_from(item: Mapping[str, Any]) -> HeadRecord:
    head = PostProcessingHead.from_document(item["document"])
    if head.digest != item["digest"]:
        raise InvalidInputError(f"head {item['version']} has another digest than was written.", field="head")
    return HeadRecord(
        model_id=item["model_id"],
        version=item["version"],
        head=head,
        created_at=_moment(item["created_at"]),
        created_by=item["created_by"],
    )


def _pin_document(pin: HeadPin) -> dict[str, Any]:
    return {"reason": pin.reason, "pinned_at": pin.pinned_at.isoformat(), "pinned_by": pin.pinned_by}


def _pin_from(item: Mapping[str, Any]) -> HeadPin:
    values: dict[str, Any] = {**item, "pinned_at": _moment(item["pinned_at"])}
    return HeadPin(**values)


def _rollout_document(rollout: Rollout) -> dict[str, Any]:
    moments = {name: _text(getattr(rollout, name)) for name in _ROLLOUT_MOMENTS}
    return {**vars(rollout), **moments}


def _rollout_from(item: Mapping[str, Any]) -> Rollout:
    moments = {name: None if item[name] is None else _moment(item[name]) for name in _ROLLOUT_MOMENTS}
    values: dict[str, Any] = {**item, **moments}
    return Rollout(**values)


def _token_document(digest: bytes, token: Token) -> dict[str, Any]:
    return {
        "secret_hash": digest.hex(),
        "id": token.id,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "created_at": token.created_at.isoformat(),
        **{name: _text(getattr(token, name)) for name in _TOKEN_MOMENTS},
        "environments": None if token.environments is None else sorted(token.environments),
    }


def _token_from(item: Mapping[str, Any]) -> tuple[bytes, Token]:
    environments = item["environments"]
    moments = {name: item[name] for name in _TOKEN_MOMENTS}
    token = Token(
        id=item["id"],
        name=item["name"],
        scopes=frozenset(Scope(scope) for scope in item["scopes"]),
        created_at=_moment(item["created_at"]),
        environments=None if environments is None else frozenset(environments),
        **{name: None if text is None else _moment(text) for name, text in moments.items()},
    )
    return bytes.fromhex(item["secret_hash"]), token


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
