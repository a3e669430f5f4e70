"""A damaged head is detected, named and left out, without effect on the others."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from lifelong_core.store import Registry, Store
from lifelong_core.store.heads.rows import keep_last_good
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import UnavailableError
from tests.databases import sqlite_only
from tests.unit.store.samples import add_model, add_serving_model, head

SITE = "site-a"


def change(store: Store, version: int, **values: Any) -> None:
    """What no call of the product does: a row of a head of the first model is changed behind its back."""
    rows, model_id = tables.heads, store.models.list()[0].id
    with store.database.write() as connection:
        condition = (rows.c.model_id == model_id) & (rows.c.version == version)
        connection.execute(sa.update(rows).where(condition).values(**values))


def registry_of(store: Store) -> Registry:
    found = store.registry()
    assert found is not None
    return found


def edited(edit: Callable[[dict[str, Any]], None]) -> str:
    document = head(1.0).to_document()
    edit(document)
    return json.dumps(document)


DAMAGE = {
    "no JSON": "{",
    "nothing": "",
    "NaN": edited(lambda document: document.update(bias=[float("nan"), 0, 0])),
    "infinity": edited(lambda document: document.update(temperature=float("inf"))),
    "a number that no float holds": edited(lambda document: document.update(temperature=10**400)),
    "another shape": edited(lambda document: document.update(bias=[0, 0])),
    "a missing field": edited(lambda document: document.pop("costs")),
    "another number": edited(lambda document: document.update(bias=[1.0000001, 0, 0])),
    "another version of the schema": edited(lambda document: document.update(schema_version=2)),
}


@sqlite_only
@pytest.mark.parametrize("document", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_head_is_named_and_the_others_are_served(store: Store, document: str):
    model, default = add_serving_model(store)
    store.heads.publish("dermatology", head(1.0), environment=SITE, actor="ann")
    change(store, 2, document=document)
    registry = registry_of(store)
    assert registry.heads == {(model.id, None): default}
    assert list(registry.damaged) == [(model.id, SITE)]
    assert registry.damaged[model.id, SITE].startswith("head 2 is damaged")
    assert registry.head_for(model, "elsewhere") == default
    with pytest.raises(UnavailableError, match="head 2 is damaged"):
        registry.head_for(model, SITE)


@sqlite_only
def test_text_that_is_not_utf_8_damages_its_own_head_only(store: Store):
    """PostgreSQL refuses such text; in a file, a bit may have turned."""
    model, default = add_serving_model(store)
    store.heads.publish("dermatology", head(1.0), environment=SITE, actor="ann")
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE heads SET document = CAST(x'7bff' AS TEXT) WHERE version = 2")
    registry = registry_of(store)
    assert (list(registry.heads), list(registry.damaged)) == ([(model.id, None)], [(model.id, SITE)])
    assert store.heads.list("dermatology") == [default]


@sqlite_only
def test_whatever_bytes_stand_in_a_document_the_registry_is_read(store: Store):
    add_serving_model(store)
    store.heads.publish("dermatology", head(1.0), environment=SITE, actor="ann")
    whole = head(1.0).to_json().encode()
    rng = random.Random(0)
    for _ in range(80):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        change(store, 2, document=sa.cast(sa.literal(bytes(changed)), sa.Text))
        registry = registry_of(store)
        assert len(registry.heads) + len(registry.damaged) == 2
        if bytes(changed) != whole and (1, SITE) in registry.heads:
            assert registry.heads[1, SITE].head == head(1.0), "only what computes nothing was changed"


@sqlite_only
def test_a_digest_that_is_not_the_recorded_one_is_damage(store: Store):
    model, _ = add_serving_model(store)
    change(store, 1, digest="0" * 64)
    registry = registry_of(store)
    assert "digest" in registry.damaged[model.id, None]
    with pytest.raises(UnavailableError, match="digest"):
        registry.head_for(model, "default")


@sqlite_only
def test_a_head_that_is_sound_and_of_another_task_is_not_served(store: Store):
    model, _ = add_serving_model(store)
    store.tasks.add("moles", ("no", "yes"), [[0, 1], [1, 0]], actor="me")
    changed = json.loads(head().to_json()) | {"class_names": ["a", "b", "c"]}
    other = head().from_document(changed)
    change(store, 1, document=other.to_json(), digest=other.digest)
    assert "does not fit: the head has the classes" in registry_of(store).damaged[model.id, None]


@sqlite_only
def test_damaged_heads_are_listed_apart_and_cannot_be_brought_back(store: Store):
    add_serving_model(store)
    store.heads.publish("dermatology", head(1.0), environment=None, actor="ann")
    change(store, 1, document="{")
    assert [record.version for record in store.heads.list("dermatology")] == [2]
    assert list(store.heads.list_damaged("dermatology")) == [1]
    with pytest.raises(UnavailableError, match="dermatology@1: head 1 is damaged"):
        store.heads.get("dermatology", 1)
    before = store.registry()
    with pytest.raises(UnavailableError, match="head 1 is damaged"):
        store.heads.rollback("dermatology", environment=None, actor="ann")
    assert store.registry() == before


@sqlite_only
def test_a_sound_publication_or_rollback_heals_the_place(store: Store):
    model, _ = add_serving_model(store)
    store.heads.publish("dermatology", head(1.0), environment=None, actor="ann")
    change(store, 2, document="{")
    assert registry_of(store).damaged
    store.heads.rollback("dermatology", environment=None, actor="ann")
    registry = registry_of(store)
    assert (registry.heads[model.id, None].version, dict(registry.damaged)) == (1, {})


@sqlite_only
def test_the_last_good_head_of_the_place_is_kept_and_no_other(store: Store):
    model, _ = add_serving_model(store)
    good = store.heads.publish("dermatology", head(1.0), environment=SITE, actor="ann")
    before = registry_of(store)
    store.heads.publish("dermatology", head(2.0), environment=SITE, actor="ann")
    store.heads.publish("dermatology", head(3.0), environment="site-b", actor="ann")
    change(store, 3, document="{")
    change(store, 4, document="{")
    kept = keep_last_good(registry_of(store), before)
    assert kept.head_for(model, SITE) == good
    assert sorted(place[1] or "" for place in kept.damaged) == [SITE, "site-b"]
    with pytest.raises(UnavailableError):  # nothing was ever good there, and the default head is another one
        kept.head_for(model, "site-b")


@sqlite_only
def test_a_model_with_the_same_number_in_another_database_lends_no_head(store: Store):
    old, _ = add_serving_model(store)
    before = registry_of(store)
    tables_with_heads = ("promotions", "head_activations", "heads", "models")
    with store.database.write() as connection:  # a new database in the place of the old one
        connection.execute(sa.update(tables.tasks).values(promoted_model_id=None))
        connection.execute(sa.update(tables.models).values(calibration_set_id=None))
        connection.execute(sa.delete(tables.calibration_sets))
        for name in tables_with_heads:
            connection.execute(sa.delete(tables.metadata.tables[name]))
    model = add_model(store, "another")
    with store.database.write() as connection:
        connection.execute(sa.update(tables.models).values(id=old.id))
    store.heads.publish("another", head(), environment=None, actor="ann")
    change(store, 1, document="{")
    registry = keep_last_good(registry_of(store), before)
    assert list(registry.damaged) == [(old.id, None)]
    assert dict(registry.heads) == {}
    assert model.reference == "another@1"


@sqlite_only
def test_a_pin_of_a_damaged_head_is_still_the_environments_own(store: Store):
    model, _ = add_serving_model(store)
    store.heads.pin("dermatology", environment=None, reason="frozen", actor="ann")
    store.heads.publish("dermatology", head(1.0), environment=SITE, actor="ann")
    change(store, 2, document="{")
    assert registry_of(store).pin_for(model, SITE) is None
