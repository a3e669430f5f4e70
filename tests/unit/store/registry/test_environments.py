"""Environments are added, disabled and deleted by name, and predictions create a limited number."""

import pytest

from lifelong_core.store import NewLabel, Registry, Scope, Store
from lifelong_core.values.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    TooManyRequestsError,
)
from tests.databases import sqlite_only
from tests.unit.store.samples import add_serving_model, entry, head


def registry_of(store: Store) -> Registry:
    registry = store.registry()
    assert registry is not None
    return registry


@sqlite_only
def test_an_environment_is_added_once_and_by_whom_is_known(store: Store):
    added = store.environments.add("clinic-a", actor="ann")
    assert store.environments.add("clinic-a", actor="bob") == added
    assert (added.name, added.created_by, added.disabled_at) == ("clinic-a", "ann", None)
    assert [one.name for one in store.environments.all()] == ["clinic-a", "default"]
    assert [(one.actor, one.action) for one in store.audit.list()] == [("ann", "environments.create")]
    with pytest.raises(InvalidInputError):
        store.environments.add("Clinic A", actor="ann")


@sqlite_only
def test_a_disabled_environment_takes_no_predictions_until_it_is_enabled(store: Store):
    store.environments.add("clinic-a", actor="ann")
    disabled = store.environments.disable("clinic-a", actor="ann")
    assert store.environments.disable("clinic-a", actor="bob") == disabled
    registry = registry_of(store)
    assert registry.disabled_environments == {"clinic-a"}
    assert "clinic-a" in registry.environments
    with pytest.raises(ForbiddenError, match="clinic-a") as raised:
        registry.check_environment("clinic-a", may_be_new=True)
    assert raised.value.field == "environment"
    store.environments.enable("clinic-a", actor="ann")
    registry_of(store).check_environment("clinic-a", may_be_new=False)
    assert [one.action for one in store.audit.list()] == [
        "environments.enable",
        "environments.disable",
        "environments.create",
    ]
    for call in (store.environments.disable, store.environments.enable):
        with pytest.raises(NotFoundError, match="clinic-b"):
            call("clinic-b", actor="ann")


@sqlite_only
def test_a_listed_environment_is_known_a_new_one_is_not(store: Store):
    registry = registry_of(store)
    registry.check_environment("default", may_be_new=False)
    registry.check_environment("clinic-a", may_be_new=True)
    with pytest.raises(NotFoundError, match="lifelong environments add clinic-a"):
        registry.check_environment("clinic-a", may_be_new=False)


def test_one_creator_creates_only_so_many_within_an_hour(store: Store):
    for name in ("a", "b"):
        store.environments.ensure(name, limit=9, creator="gateway", hourly=2)
    store.environments.ensure("b", limit=9, creator="gateway", hourly=2)
    with pytest.raises(TooManyRequestsError, match="lifelong environments add c") as raised:
        store.environments.ensure("c", limit=9, creator="gateway", hourly=2)
    assert raised.value.retry_after_seconds == 3600
    store.environments.ensure("c", limit=9, creator="another", hourly=2)
    assert {one.name: one.created_by for one in store.environments.all()} == {
        "a": "gateway",
        "b": "gateway",
        "c": "another",
        "default": None,
    }


@sqlite_only
def test_what_was_never_used_is_deleted(store: Store):
    store.environments.add("clinic-a", actor="ann")
    store.environments.delete("clinic-a", actor="ann")
    assert store.environments.list() == ["default"]
    assert registry_of(store).environments == {"default"}
    assert store.audit.list()[0].action == "environments.delete"
    with pytest.raises(NotFoundError):
        store.environments.delete("clinic-a", actor="ann")


@sqlite_only
def test_what_was_used_is_not_deleted(store: Store):
    model, _ = add_serving_model(store)
    logged = entry(model_id=model.id, environment="logged")
    store.predictions.append([logged])
    store.heads.publish(model.reference, head(), environment="published", actor="ann")
    store.tokens.create("gateway", [Scope.PREDICT], actor="ann", environments=["bound"])
    store.environments.add("logged", actor="ann")
    store.labels.record([NewLabel(logged.predictions[0].id, 1)])
    for name, reason in (
        ("logged", "predictions were logged"),
        ("published", "heads were published"),
        ("bound", "token 'gateway' is bound"),
        ("default", "requests that name none"),
    ):
        with pytest.raises(ConflictError, match=f"{reason}.*disable {name}"):
            store.environments.delete(name, actor="ann")
    store.tokens.revoke("gateway", actor="ann")
    store.environments.delete("bound", actor="ann")
    assert store.environments.list() == ["default", "logged", "published"]
