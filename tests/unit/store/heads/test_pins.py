"""No cycle replaces a pinned head until it is unpinned."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lifelong_core.store import Model, Store
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.samples import add_model, add_serving_model, cycle, head

SITE = "site-a"


def pin(store: Store, environment: str | None = SITE, reason: str = "under audit") -> None:
    """Pin a place that has been used."""
    if environment is not None:
        store.environments.ensure(environment, limit=9)
    store.heads.pin("dermatology", environment=environment, reason=reason, actor="ann")


def publish(store: Store, environment: str | None, bias: float = 5) -> int:
    return store.heads.publish("dermatology", head(bias), environment=environment, actor="ann").version


def pinned(store: Store, model: Model, environment: str) -> bool:
    """As the registry says; what a cycle may do must agree with it."""
    registry = store.registry()
    assert registry is not None
    return registry.pin_for(model, environment) is not None


def swap(store: Store, model: Model, environment: str = SITE) -> int | None:
    registry = store.registry()
    assert registry is not None
    version = registry.head_for(model, environment).version
    judged = cycle(model, outcome="swap", due_at=datetime.now(UTC), head_version=version)
    mine = replace(judged, environment=environment)
    return store.cycles.finish(mine, candidate=head(1), expected_sequence=None).published_version


def test_a_pin_tells_who_holds_what_and_why_until_it_is_taken_away(store: Store):
    model, _ = add_serving_model(store)
    store.environments.ensure(SITE, limit=9)
    before = store.registry()
    made = store.heads.pin("dermatology", environment=SITE, reason="under audit", actor="ann")
    assert (made.model_id, made.environment, made.reason, made.pinned_by) == (
        model.id,
        SITE,
        "under audit",
        "ann",
    )
    assert store.heads.pins("dermatology") == [made]
    registry = store.registry()
    assert registry is not None
    assert before is not None
    assert registry.revision > before.revision
    assert registry.pin_for(model, SITE) == made
    entry = store.audit.list(limit=1)[0]
    assert (entry.actor, entry.action, entry.subject) == ("ann", "heads.pin", "dermatology@1/site-a")
    assert entry.details == {"version": 1, "reason": "under audit"}
    store.heads.unpin("dermatology", environment=SITE, actor="bob")
    assert store.heads.pins("dermatology") == []
    entry = store.audit.list(limit=1)[0]
    assert (entry.actor, entry.action, entry.subject) == ("bob", "heads.unpin", "dermatology@1/site-a")
    assert not pinned(store, model, SITE)


@sqlite_only
def test_a_cycle_never_publishes_over_a_pin(store: Store):
    model, _ = add_serving_model(store)
    pin(store)
    before = (store.registry(), store.audit.list())
    with pytest.raises(
        ConflictError, match=r"head in site-a of dermatology@1 is pinned by ann: 'under audit'"
    ):
        swap(store, model)
    assert (store.registry(), store.audit.list(), store.cycles.list()) == (*before, [])
    assert swap(store, model, "site-b") == 2
    store.heads.unpin("dermatology", environment=SITE, actor="ann")
    assert swap(store, model) == 3


@sqlite_only
@pytest.mark.parametrize("own", [False, True])
def test_a_pinned_default_head_holds_for_the_environments_that_use_it(store: Store, own: bool):
    model, _ = add_serving_model(store)
    if own:
        publish(store, SITE)
    pin(store, None)
    assert pinned(store, model, SITE) is not own
    if own:
        assert swap(store, model) == 3
        store.heads.rollback("dermatology", environment=SITE, actor="ann")
        store.heads.rollback("dermatology", environment=SITE, actor="ann")
        assert pinned(store, model, SITE)
    with pytest.raises(ConflictError, match="default head of dermatology@1 is pinned"):
        swap(store, model)


@sqlite_only
def test_people_publish_and_roll_back_on_a_pinned_place_and_the_pin_stays(store: Store):
    model, _ = add_serving_model(store)
    pin(store)
    assert publish(store, SITE) == 2
    assert pinned(store, model, SITE)
    assert store.heads.rollback("dermatology", environment=SITE, actor="ann").version == 1
    assert pinned(store, model, SITE)
    with pytest.raises(ConflictError, match="pinned"):
        swap(store, model)


def test_what_is_pinned_already_or_not_at_all_is_a_conflict(store: Store):
    add_serving_model(store)
    pin(store)
    with pytest.raises(ConflictError, match="pinned by ann: 'under audit'"):
        pin(store, reason="another")
    pin(store, None)
    assert [one.environment for one in store.heads.pins("dermatology")] == [None, SITE]
    store.environments.ensure("site-b", limit=9)
    with pytest.raises(ConflictError, match="head in site-b of dermatology@1 is not pinned"):
        store.heads.unpin("dermatology", environment="site-b", actor="ann")


@sqlite_only
@pytest.mark.parametrize("environment", [SITE, None])
def test_what_the_caller_did_not_see_is_neither_pinned_nor_unpinned(store: Store, environment: str | None):
    add_serving_model(store)
    publish(store, environment)
    newest = store.heads.activations("dermatology", environment=environment)[-1].sequence
    options = {"environment": environment, "actor": "ann"}
    with pytest.raises(ConflictError, match=f"activation {newest}, expected {newest - 1}"):
        store.heads.pin("dermatology", reason="why", expected_sequence=newest - 1, **options)
    assert store.heads.pins("dermatology") == []
    store.heads.pin("dermatology", reason="why", expected_sequence=newest, **options)
    with pytest.raises(ConflictError, match=f"activation {newest}, expected {newest + 1}"):
        store.heads.unpin("dermatology", expected_sequence=newest + 1, **options)
    assert len(store.heads.pins("dermatology")) == 1
    store.heads.unpin("dermatology", expected_sequence=newest, **options)


@sqlite_only
@pytest.mark.parametrize(
    ("reason", "is_legal"),
    [("r" * 200, True), ("r" * 201, False), ("", False), (" ", False), ("a\nb", False)],
)
def test_a_pin_needs_a_reason_of_limited_length(store: Store, reason: str, is_legal: bool):
    add_serving_model(store)
    if is_legal:
        pin(store, reason=reason)
        assert [one.reason for one in store.heads.pins("dermatology")] == [reason]
        return
    with pytest.raises(InvalidInputError) as refused:
        pin(store, reason=reason)
    assert refused.value.field == "reason"


@sqlite_only
def test_only_what_is_in_force_can_be_pinned(store: Store):
    add_model(store)
    with pytest.raises(ConflictError, match="no head"):
        pin(store)
    with pytest.raises(NotFoundError):
        store.heads.pin("nothing", environment=None, reason="why", actor="ann")
    with pytest.raises(NotFoundError):
        store.heads.unpin("nothing", environment=None, actor="ann")


@sqlite_only
def test_a_misspelt_environment_is_neither_pinned_nor_unpinned(store: Store):
    model, _ = add_serving_model(store)
    pin(store)
    before = (store.registry(), store.audit.list(), store.environments.list())
    place = {"environment": "sight-a", "actor": "ann"}
    with pytest.raises(
        NotFoundError, match=r"no environment 'sight-a'; known are default, site-a\.(.*)new ones"
    ) as refused:
        store.heads.pin("dermatology", reason="why", **place)
    assert refused.value.field == "environment"
    with pytest.raises(NotFoundError, match=r"known are default, site-a\."):
        store.heads.unpin("dermatology", **place)
    with pytest.raises(InvalidInputError, match="legal"):
        store.heads.pin("dermatology", reason="why", environment="Site New", actor="ann")
    assert (store.registry(), store.audit.list(), store.environments.list()) == before
    pin(store, None)
    assert pinned(store, model, "sight-a")


@sqlite_only
def test_of_many_environments_a_message_names_some(store: Store):
    add_serving_model(store)
    for number in range(30):
        store.environments.ensure(f"site-{number:02}", limit=99)
    with pytest.raises(NotFoundError, match=r"default, site-00, (.*), site-18 and 11 more\."):
        store.heads.pin("dermatology", reason="why", environment="nowhere", actor="ann")
