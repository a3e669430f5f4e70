import itertools
import threading
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.deploy import LabeledLogits, PostProcessingHead, fit_head
from lifelong_core.store import Model, Store, register_calibration
from lifelong_core.store.heads.rows import DamagedHeadError
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, calibration, head

SITE = "site-a"


def publish(store: Store, bias: float, environment: str | None = SITE, **options: Any) -> int:
    return store.heads.publish(
        "dermatology", head(bias), environment=environment, actor="ann", **options
    ).version


def rollback(store: Store, environment: str | None = SITE) -> int:
    return store.heads.rollback("dermatology", environment=environment, actor="bob").version


def serving(store: Store, model: Model, environment: str = SITE) -> int:
    registry = store.registry()
    assert registry is not None
    return registry.head_for(model, environment).version


@sqlite_only
def test_costs_that_reward_errors_are_published_only_with_a_reason(store: Store):
    add_model(store)
    gains = PostProcessingHead(1.0, np.zeros(3), -COSTS, np.full(3, 1 / 3), class_names=CLASSES)
    with pytest.raises(InvalidInputError, match=r"costs: .*the right one"):
        store.heads.publish("dermatology", gains, environment=SITE, actor="ann")
    store.heads.publish("dermatology", gains, environment=SITE, force_reason="a test", actor="ann")
    (entry,) = store.audit.list(limit=1)
    assert (entry.action, entry.details["force_reason"]) == ("heads.publish", "a test")


def test_a_head_comes_back_to_the_last_bit_and_with_its_provenance(store: Store):
    add_model(store)
    published = PostProcessingHead(
        [0.1 + 0.2, 1e-3, 7.0],
        [1 / 3, -0.0, 1e99],
        COSTS,
        [1, 0, 0],
        CLASSES,
        {"origin": "by hand", "n": [1, None]},
    )
    record = store.heads.publish("dermatology", published, environment=None, actor="ann")
    found = store.heads.get("dermatology", record.version)
    assert found.head.to_json() == published.to_json()
    assert found.head.digest == published.digest
    assert (found.version, found.created_by) == (1, "ann")
    assert found == record


@sqlite_only
def test_versions_count_up_over_all_environments_of_a_model(store: Store):
    add_model(store)
    assert [publish(store, 0, None), publish(store, 1, SITE), publish(store, 2, "site-b")] == [1, 2, 3]
    add_model(store, "other")
    assert store.heads.publish("other", head(), environment=None, actor="ann").version == 1
    assert [record.version for record in store.heads.list("dermatology")] == [1, 2, 3]
    with pytest.raises(NotFoundError, match="no head 4"):
        store.heads.get("dermatology", 4)


@sqlite_only
def test_publishing_for_an_environment_creates_it(store: Store):
    add_model(store)
    publish(store, 0, "site-new")
    assert "site-new" in store.environments.list()
    with pytest.raises(InvalidInputError, match="legal"):
        publish(store, 0, "Site New")


@sqlite_only
@pytest.mark.parametrize(
    "unfit",
    [
        PostProcessingHead(1.0, [0, 0], COSTS[:2, :2], [0.5, 0.5], CLASSES[:2]),
        PostProcessingHead(1.0, [0, 0, 0], COSTS, [1, 0, 0], ("malignant", "benign", "healthy")),
        PostProcessingHead(1.0, [0, 0, 0], np.hstack([COSTS, COSTS[:, :1]]), [1, 0, 0], CLASSES),
    ],
    ids=["fewer classes", "classes in another order", "costs with another decision"],
)
def test_a_head_that_does_not_fit_the_task_is_refused(store: Store, unfit: PostProcessingHead):
    add_model(store)
    with pytest.raises(InvalidInputError) as refused:
        store.heads.publish("dermatology", unfit, environment=None, actor="ann")
    assert refused.value.field == "head"
    assert store.heads.list("dermatology") == []
    assert [entry.action for entry in store.audit.list()] == ["models.add", "tasks.add"]


def test_the_history_tells_who_put_which_head_in_force(store: Store):
    add_model(store)
    publish(store, 0, None)
    publish(store, 1)
    publish(store, 2)
    rollback(store)
    history = store.heads.activations("dermatology", environment=SITE)
    assert [(one.sequence, one.head_version, one.reason, one.activated_by) for one in history] == [
        (1, 2, "publish", "ann"),
        (2, 3, "publish", "ann"),
        (3, 2, "rollback", "bob"),
    ]
    assert {one.environment for one in history} == {SITE}
    assert [one.environment for one in store.heads.activations("dermatology")] == [None]
    assert all(one.activated_at <= two.activated_at for one, two in itertools.pairwise(history))


@sqlite_only
def test_repeated_rollbacks_walk_back_and_never_forth(store: Store):
    model, _ = add_serving_model(store)
    versions = [publish(store, bias, None) for bias in (1, 2, 3)]
    assert versions == [2, 3, 4]
    assert [rollback(store, None) for _ in range(3)] == [3, 2, 1]
    assert serving(store, model) == 1
    with pytest.raises(ConflictError, match="no head was in force before"):
        rollback(store, None)


@sqlite_only
def test_a_publication_after_a_rollback_covers_what_the_rollback_brought_back(store: Store):
    add_serving_model(store)
    publish(store, 1, None)
    publish(store, 2, None)
    assert rollback(store, None) == 2
    assert publish(store, 3, None) == 4
    assert [rollback(store, None), rollback(store, None)] == [2, 1]


def test_rolling_back_the_first_head_of_an_environment_returns_it_to_the_default_head(store: Store):
    model, _ = add_serving_model(store)
    publish(store, 1)
    assert serving(store, model) == 2
    assert rollback(store) == 1
    assert serving(store, model) == 1
    last = store.heads.activations("dermatology", environment=SITE)[-1]
    assert (last.head_version, last.uses_default_head) == (1, True)
    # It follows the default head again, and there is nothing further back.
    publish(store, 5, None)
    assert serving(store, model) == 3
    with pytest.raises(ConflictError):
        rollback(store)
    # A head published now is covered in the same way.
    publish(store, 6)
    assert serving(store, model) == 4
    assert rollback(store) == 3
    assert serving(store, model) == 3


@sqlite_only
def test_without_a_default_head_the_first_head_of_an_environment_stays(store: Store):
    model = add_model(store)
    publish(store, 1)
    with pytest.raises(ConflictError):
        rollback(store)
    assert serving(store, model) == 1


@sqlite_only
def test_environments_roll_back_on_their_own(store: Store):
    model, _ = add_serving_model(store)
    publish(store, 1, "site-a")
    publish(store, 2, "site-b")
    publish(store, 3, "site-b")
    rollback(store, "site-b")
    assert serving(store, model, "site-a") == 2
    assert serving(store, model, "site-b") == 3
    with pytest.raises(NotFoundError, match="default, site-a, site-b"):
        rollback(store, "site-c")


@sqlite_only
@pytest.mark.parametrize("name", ["", "Site A", "a" * 65])
@pytest.mark.parametrize("action", ["publish", "rollback", "pin", "unpin", "activations"])
def test_an_illegal_name_is_never_taken_for_the_default_head(store: Store, action: str, name: str):
    """An unset variable of a shell is the empty name."""
    model, _ = add_serving_model(store)
    publish(store, 1, None)
    if action == "unpin":
        store.heads.pin("dermatology", environment=None, reason="held", actor="ann")
    before = (store.registry(), store.audit.list())
    calls: dict[str, Any] = {
        "publish": lambda: publish(store, 2, name),
        "rollback": lambda: rollback(store, name),
        "pin": lambda: store.heads.pin("dermatology", environment=name, reason="why", actor="ann"),
        "unpin": lambda: store.heads.unpin("dermatology", environment=name, actor="ann"),
        "activations": lambda: store.heads.activations("dermatology", environment=name),
    }
    with pytest.raises(InvalidInputError) as refused:
        calls[action]()
    assert refused.value.field == "environment"
    assert (store.registry(), store.audit.list()) == before
    assert serving(store, model) == 2


def roll_back_to(store: Store, version: int, environment: str | None = SITE, **options: Any) -> int:
    return store.heads.rollback(
        "dermatology", environment=environment, actor="bob", to_version=version, **options
    ).version


@sqlite_only
def test_rolling_back_to_a_version_is_as_many_steps_back_as_lead_to_it(store: Store):
    model, _ = add_serving_model(store)
    for bias in (1, 2, 3):
        publish(store, bias, None)
    assert roll_back_to(store, 2, None, expected_sequence=4) == 2
    assert serving(store, model) == 2
    assert rollback(store, None) == 1
    last = store.heads.activations("dermatology")[-2]
    assert (last.sequence, last.head_version, last.reason, last.activated_by) == (5, 2, "rollback", "bob")
    entry = store.audit.list(limit=2)[1]
    assert (entry.action, entry.actor, entry.subject) == (
        "heads.rollback",
        "bob",
        "dermatology@1/(default head)",
    )
    assert entry.details == {"version": 2, "to_version": 2}


@sqlite_only
def test_rolling_back_to_a_head_from_elsewhere_is_undone_by_the_next_rollback(store: Store):
    model, _ = add_serving_model(store)
    publish(store, 1)
    publish(store, 2, "site-b")
    assert roll_back_to(store, 3) == 3
    assert serving(store, model) == 3
    assert rollback(store) == 2
    # Rollbacks do not lead forth to it again, so that it is a new step once more.
    assert roll_back_to(store, 3) == 3
    assert [rollback(store), rollback(store)] == [2, 1]


@sqlite_only
def test_an_environment_keeps_the_version_that_it_was_rolled_back_to(store: Store):
    model, _ = add_serving_model(store)
    publish(store, 1)
    rollback(store)
    assert roll_back_to(store, 1) == 1
    publish(store, 2, None)
    assert serving(store, model) == 1
    assert rollback(store) == 3


@sqlite_only
def test_versions_that_cannot_come_in_force_are_refused(store: Store):
    add_serving_model(store)
    publish(store, 1, None)
    add_model(store, "other")
    store.heads.publish("other", head(), environment=None, actor="ann")
    before = (store.registry(), store.audit.list())
    with pytest.raises(NotFoundError, match="no head 3") as refused:
        roll_back_to(store, 3, None)
    assert refused.value.field == "to_version"
    with pytest.raises(ConflictError, match="head 2 of dermatology@1 is in force there already") as refused:
        roll_back_to(store, 2, None)
    assert refused.value.field == "to_version"
    with pytest.raises(ConflictError, match="activation 2, expected 1"):
        roll_back_to(store, 1, None, expected_sequence=1)
    assert (store.registry(), store.audit.list()) == before
    with store.database.write() as connection:
        connection.execute(sa.update(tables.heads).where(tables.heads.c.version == 1).values(digest="0" * 64))
    with pytest.raises(DamagedHeadError) as refused:
        roll_back_to(store, 1, None)
    assert refused.value.field == "to_version"
    assert store.audit.list() == before[1]


@sqlite_only
def test_a_publication_that_expects_another_state_is_refused_and_leaves_no_trace(store: Store):
    add_serving_model(store)
    publish(store, 1, expected_sequence=0)
    publish(store, 2, expected_sequence=1)
    before = (store.registry(), store.audit.list())
    for outdated in (0, 1, 3):
        with pytest.raises(ConflictError, match="activation 2"):
            publish(store, 3, expected_sequence=outdated)
    assert (store.registry(), store.audit.list()) == before


@sqlite_only
def test_a_rollback_that_expects_another_state_is_refused_and_leaves_no_trace(store: Store):
    add_serving_model(store)
    publish(store, 1)
    before = (store.registry(), store.audit.list())
    for outdated in (0, 2):
        with pytest.raises(ConflictError, match="activation 1"):
            store.heads.rollback("dermatology", environment=SITE, actor="bob", expected_sequence=outdated)
    assert (store.registry(), store.audit.list()) == before
    store.heads.rollback("dermatology", environment=SITE, actor="bob", expected_sequence=1)
    assert store.heads.activations("dermatology", environment=SITE)[-1].reason == "rollback"


@sqlite_only
def test_only_the_head_that_is_meant_is_published(store: Store):
    add_model(store)
    with pytest.raises(InvalidInputError, match="digest") as refused:
        publish(store, 1, None, expected_digest=head(2).digest)
    assert refused.value.field == "digest"
    assert store.heads.list("dermatology") == []
    assert publish(store, 1, None, expected_digest=head(1).digest) == 1


def fitted_on(data: LabeledLogits) -> PostProcessingHead:
    return fit_head(data, COSTS, class_names=CLASSES)


@sqlite_only
def test_a_head_fitted_on_another_models_calibration_set_is_refused(store: Store):
    add_serving_model(store)
    add_model(store, "other")
    register_calibration(store, "other", calibration(5), actor="tests")
    before = store.heads.list("dermatology")
    with pytest.raises(
        InvalidInputError, match="calibration set of other@1, not of dermatology@1"
    ) as refused:
        store.heads.publish("dermatology", fitted_on(calibration(5)), environment=None, actor="ann")
    assert refused.value.field == "head"
    assert store.heads.list("dermatology") == before
    # Its own, also an older one; one that both have; and one that was never registered.
    store.calibration_sets.add("dermatology", calibration(6), actor="tests")
    assert (
        store.heads.publish("dermatology", fitted_on(calibration()), environment=None, actor="ann").version
        == 2
    )
    store.calibration_sets.add("other", calibration(6), actor="tests")
    for known in (calibration(6), calibration(7)):
        store.heads.publish("dermatology", fitted_on(known), environment=None, actor="ann")
    store.calibration_sets.add("dermatology", calibration(5), actor="tests")
    store.heads.publish("dermatology", fitted_on(calibration(5)), environment=None, actor="ann")


def test_of_those_who_saw_the_same_state_one_publishes(store: Store):
    model, _ = add_serving_model(store)
    start = threading.Barrier(5)
    published: list[int] = []
    refused: list[ConflictError] = []

    def work(bias: int) -> None:
        start.wait()
        try:
            published.append(publish(store, bias, expected_sequence=0))
        except ConflictError as error:
            refused.append(error)

    threads = [threading.Thread(target=work, args=(bias,)) for bias in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (published, len(refused)) == ([2], 4)
    assert serving(store, model) == 2
    assert len(store.heads.activations("dermatology", environment=SITE)) == 1


def active_set(store: Store) -> int | None:
    return store.models.get("dermatology").calibration_set_id


def calibrated_twice(store: Store) -> tuple[int | None, int | None]:
    """A model with two calibration sets, and the head that was fitted on each; the second set is active."""
    add_model(store)
    register_calibration(store, "dermatology", calibration(1), actor="ann")
    first = active_set(store)
    register_calibration(store, "dermatology", calibration(2), actor="ann")
    return first, active_set(store)


@sqlite_only
@pytest.mark.parametrize("to_version", [None, 1])
def test_a_default_head_brings_back_its_calibration_set(store: Store, to_version: int | None):
    first, second = calibrated_twice(store)
    record = store.heads.rollback("dermatology", environment=None, actor="bob", to_version=to_version)
    assert active_set(store) == first
    newest = store.audit.list(limit=2)
    assert [entry.action for entry in newest] == ["calibration_sets.activate", "heads.rollback"]
    assert (newest[0].actor, newest[0].subject) == ("bob", "dermatology@1")
    assert newest[0].details == {"id": first, "previous": second}
    found = store.calibration_sets.of_head(record)
    assert f"Its calibration set {first} is the active one of dermatology@1" in found.sentence()
    store.heads.rollback("dermatology", environment=None, actor="bob", to_version=2)
    assert active_set(store) == second


@sqlite_only
def test_a_default_head_that_is_published_again_chooses_its_calibration_set(store: Store):
    first, _ = calibrated_twice(store)
    old = store.heads.get("dermatology", 1).head
    store.heads.publish("dermatology", old, environment=None, actor="bob")
    assert active_set(store) == first


@sqlite_only
def test_the_head_of_an_environment_leaves_the_calibration_set_of_the_model(store: Store):
    first, second = calibrated_twice(store)
    record = store.heads.rollback("dermatology", environment="default", actor="bob", to_version=1)
    assert active_set(store) == second
    sentence = store.calibration_sets.of_head(record).sentence()
    assert f"set {second} stays the active one" in sentence
    assert f"`lifelong calibration-sets activate dermatology@1 {first}`" in sentence


@sqlite_only
def test_a_head_that_names_no_calibration_set_leaves_the_active_one(store: Store):
    _, second = calibrated_twice(store)
    record = store.heads.publish("dermatology", head(3.0), environment=None, actor="bob")
    assert active_set(store) == second
    assert store.calibration_sets.of_head(record).fitted_on is None


@sqlite_only
def test_a_calibration_set_is_activated_by_hand(store: Store):
    first, second = calibrated_twice(store)
    assert first is not None
    assert second is not None
    store.calibration_sets.activate("dermatology", first, actor="bob")
    assert active_set(store) == first
    entry = store.audit.list(limit=1)[0]
    assert (entry.action, entry.details) == ("calibration_sets.activate", {"id": first, "previous": second})
    with pytest.raises(ConflictError, match="active already"):
        store.calibration_sets.activate("dermatology", first, actor="bob")
    add_model(store, "other")
    with pytest.raises(NotFoundError, match=f"other@1 has no calibration set {second}"):
        store.calibration_sets.activate("other", second, actor="bob")
