"""Tasks, models, environments, calibration sets, and the registry that workers poll."""

import itertools
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from lifelong_core.decision_rules.rules import DecisionRule, rule_document
from lifelong_core.deploy import Argmax, BayesRule, CutOffs, LabeledLogits, TargetValue
from lifelong_core.store import Model, Scope, Store, promote_calibrated, register_calibration
from lifelong_core.store.access.token_lookup import hash_secret
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.values.preprocessing import Preprocessing, Resize
from tests.databases import sqlite_only
from tests.unit.store.design_samples import interview, recommendation
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, calibration, entry, head

PREPROCESSING = Preprocessing(resize=Resize(height=32, width=48), mean=(0.1, 0.2, 0.3))


def test_a_task_is_found_as_it_was_added(store: Store):
    costs = np.array([[0, 1, 0.1], [1e-9, 0, 0.1]])
    added = store.tasks.add("lesions", ["benign", "malignant"], costs, actor="me")
    found = store.tasks.get("lesions")
    assert (found.name, found.class_names, found.promoted_model_id) == (
        "lesions",
        ("benign", "malignant"),
        None,
    )
    assert np.array_equal(found.costs, costs)
    assert not found.costs.flags.writeable
    assert found.created_at == added.created_at
    assert [task.name for task in store.tasks.list()] == ["lesions"]


@sqlite_only
@pytest.mark.parametrize("rule", [Argmax(), CutOffs((0.5, 0.2, 0.1)), TargetValue("PPV", 0.8, 2)])
def test_a_task_keeps_its_decision_rule(store: Store, rule: DecisionRule):
    added = store.tasks.add("lesions", CLASSES, COSTS, decision_rule=rule, actor="me")
    assert added.decision_rule == store.tasks.get("lesions").decision_rule == rule
    assert store.registry().tasks[added.id] == added
    assert store.audit.list()[0].details == {"classes": list(CLASSES), "decision_rule": rule_document(rule)}
    assert store.tasks.add("another", CLASSES, COSTS, actor="me").decision_rule == BayesRule()
    assert store.audit.list()[0].details == {"classes": list(CLASSES)}


@sqlite_only
def test_a_decision_rule_of_other_classes_is_refused(store: Store):
    with pytest.raises(InvalidInputError, match=r"^decision_rule.positive_class: there is no class 3"):
        store.tasks.add("lesions", CLASSES, COSTS, decision_rule=TargetValue("TPR", 0.9, 3), actor="me")
    assert store.tasks.list() == []


@sqlite_only
@pytest.mark.parametrize(
    ("name", "classes", "costs", "field"),
    [
        ("Lesions", CLASSES, COSTS, "name"),
        ("lesions", ("a",), [[0]], "class_names"),
        ("lesions", ("a", "a", "b"), COSTS, "class_names"),
        ("lesions", ("a", "", "b"), COSTS, "class_names"),
        ("lesions", "abc", COSTS, "class_names"),
        ("lesions", CLASSES, COSTS[:2], "costs"),
        ("lesions", CLASSES, COSTS * np.nan, "costs"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(store: Store, name: str, classes: Any, costs: Any, field: str):
    with pytest.raises(InvalidInputError) as refused:
        store.tasks.add(name, classes, costs, actor="me")
    assert refused.value.field == field
    assert store.tasks.list() == []


@sqlite_only
def test_a_task_keeps_its_name_for_good(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="me")
    with pytest.raises(ConflictError, match="lesions"):
        store.tasks.add("lesions", ("a", "b", "c"), COSTS, actor="me")
    assert store.tasks.get("lesions").class_names == CLASSES


@sqlite_only
def test_unknown_names_are_not_found(store: Store):
    calls: list[Callable[[], object]] = [
        lambda: store.tasks.get("nothing"),
        lambda: store.models.get("nothing"),
        lambda: store.models.add("nothing", "m", kind="external", actor="me"),
        lambda: promote_calibrated(store, "nothing@1", actor="me"),
        lambda: store.calibration_sets.get(1),
        lambda: store.calibration_sets.load(1),
        lambda: store.calibration_sets.list("nothing"),
        lambda: store.calibration_sets.add("nothing", calibration(), actor="me"),
        lambda: store.heads.list("nothing"),
        lambda: store.heads.activations("nothing"),
        lambda: store.heads.publish("nothing", head(), environment=None, actor="me"),
        lambda: store.heads.rollback("nothing", environment=None, actor="me"),
        lambda: register_calibration(store, "nothing", calibration(), actor="me"),
        lambda: store.tokens.revoke("nothing", actor="me"),
    ]
    for call in calls:
        with pytest.raises(NotFoundError):
            call()


def serving(store: Store, reference: str) -> Model:
    """The model with a default head of its own."""
    store.heads.publish(reference, head(), environment=None, actor="me")
    return store.models.get(reference)


def test_versions_of_a_model_count_up_and_are_found_by_reference(store: Store):
    first, second, other = (add_model(store, name) for name in ("derm", "derm", "other"))
    assert [model.reference for model in store.models.list()] == ["derm@1", "derm@2", "other@1"]
    assert store.models.get("derm@1") == first
    assert store.models.get("derm") == second
    with pytest.raises(ConflictError, match="no head yet") as caught:
        promote_calibrated(store, "derm@1", actor="me")
    assert "`lifelong calibrate derm@1 " in str(caught.value.hint)
    first = serving(store, "derm@1")
    promote_calibrated(store, "derm@1", actor="me")
    assert store.models.get("derm") == first
    assert store.models.get("other") == other
    with pytest.raises(NotFoundError):
        store.models.get("derm@3")


@sqlite_only
def test_an_onnx_model_keeps_its_file_and_preprocessing(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="me")
    store.models.add("lesions", "m", kind="onnx", onnx=b"graph", preprocessing=PREPROCESSING, actor="me")
    found = store.models.get("m")
    assert found.kind == "onnx"
    assert found.preprocessing == PREPROCESSING
    assert found.artifact is not None
    assert store.artifacts.get(found.artifact) == b"graph"


@sqlite_only
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"kind": "onnx", "preprocessing": PREPROCESSING}, "onnx"),
        ({"kind": "onnx", "onnx": b"", "preprocessing": PREPROCESSING}, "onnx"),
        ({"kind": "onnx", "onnx": b"graph"}, "preprocessing"),
        ({"kind": "external", "onnx": b"graph"}, "kind"),
        ({"kind": "external", "preprocessing": PREPROCESSING}, "kind"),
        ({"kind": "pickle"}, "kind"),
        ({"kind": "external", "name": "not legal"}, "name"),
    ],
)
def test_a_model_needs_what_its_kind_needs(store: Store, arguments: dict[str, Any], field: str):
    store.tasks.add("lesions", CLASSES, COSTS, actor="me")
    with pytest.raises(InvalidInputError) as refused:
        store.models.add(**{"task": "lesions", "name": "m", "actor": "me", **arguments})
    assert refused.value.field == field
    assert store.models.list() == []


@sqlite_only
def test_the_name_of_a_model_belongs_to_one_task(store: Store):
    add_model(store, "derm", task="lesions")
    with pytest.raises(ConflictError, match="another task"):
        add_model(store, "derm", task="moles")


@sqlite_only
def test_each_task_promotes_its_own_model(store: Store):
    add_model(store, "derm", task="lesions")
    add_model(store, "mole", task="moles")
    serving(store, "derm")
    serving(store, "mole")
    promote_calibrated(store, "derm", actor="me")
    promoted = promote_calibrated(store, "mole", actor="me")
    assert store.tasks.get("moles").promoted_model_id == promoted.id
    assert store.tasks.get("lesions").promoted_model_id == store.models.get("derm").id


def test_models_added_at_once_get_different_versions(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="me")
    start = threading.Barrier(5)
    versions: list[int] = []

    def work() -> None:
        start.wait()
        versions.append(store.models.add("lesions", "m", kind="external", actor="me").version)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(versions) == [1, 2, 3, 4, 5]


def test_a_calibration_set_comes_back_exactly_and_becomes_the_active_one(store: Store):
    model = add_model(store)
    first, second = calibration(1), calibration(2, samples=31)
    one = store.calibration_sets.add("dermatology", first, actor="me")
    assert store.models.get("dermatology").calibration_set_id == one.id
    two = store.calibration_sets.add("dermatology@1", second, actor="me")
    assert store.models.get("dermatology").calibration_set_id == two.id
    assert store.calibration_sets.load(one.id) == first
    assert store.calibration_sets.load(two.id) == second
    found = store.calibration_sets.get(two.id)
    assert (found.model_id, found.samples, found.digest) == (model.id, 31, two.digest)
    assert np.array_equal(found.prevalence, second.prevalence)
    assert [known.id for known in store.calibration_sets.list("dermatology")] == [one.id, two.id]


@sqlite_only
def test_the_same_calibration_set_is_kept_once_and_becomes_active_again(store: Store):
    add_model(store)
    one = store.calibration_sets.add("dermatology", calibration(1), actor="me")
    store.calibration_sets.add("dermatology", calibration(2), actor="me")
    again = store.calibration_sets.add("dermatology", calibration(1), actor="me")
    assert again.id == one.id
    assert store.models.get("dermatology").calibration_set_id == one.id
    assert len(store.calibration_sets.list("dermatology")) == 2


@sqlite_only
def test_a_calibration_set_with_other_classes_is_refused(store: Store):
    add_model(store)
    two_classes = LabeledLogits(np.eye(2), [0, 1])
    with pytest.raises(InvalidInputError, match="expected 3 columns"):
        store.calibration_sets.add("dermatology", two_classes, actor="me")
    assert store.models.get("dermatology").calibration_set_id is None


def test_environments_are_created_on_first_use_up_to_the_limit(store: Store):
    assert store.environments.list() == ["default"]
    store.environments.ensure("default", limit=1)
    store.environments.ensure("site-b", limit=3)
    store.environments.ensure("site-a", limit=3)
    store.environments.ensure("site-a", limit=3)
    with pytest.raises(ConflictError, match="3 environments"):
        store.environments.ensure("site-c", limit=3)
    with pytest.raises(InvalidInputError, match="legal"):
        store.environments.ensure("Site A", limit=99)
    assert store.environments.list() == ["default", "site-a", "site-b"]


def test_the_limit_holds_when_many_ask_at_once(store: Store):
    start = threading.Barrier(6)
    refused: list[ConflictError] = []

    def work(name: str) -> None:
        start.wait()
        try:
            store.environments.ensure(name, limit=4)
        except ConflictError as error:
            refused.append(error)

    threads = [threading.Thread(target=work, args=(f"site-{index}",)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.environments.list()) == 4
    assert len(refused) == 3


def test_the_registry_holds_everything_that_a_worker_needs(store: Store):
    model, record = add_serving_model(store)
    own = store.heads.publish(model.reference, head(1.0), environment="site-a", actor="me")
    registry = store.registry()
    assert registry is not None
    assert [task.name for task in registry.tasks.values()] == ["lesions"]
    assert registry.models == {model.id: store.models.get("dermatology")}
    assert registry.heads == {(model.id, None): record, (model.id, "site-a"): own}
    assert registry.environments == {"default", "site-a"}
    assert registry.resolve_model(None).id == model.id
    assert registry.head_for(model, "site-a") == own
    assert registry.head_for(model, "default") == record


def test_every_change_that_a_worker_must_see_raises_the_revision_and_nothing_else_does(store: Store):
    add_serving_model(store)

    def revision_after(change: Callable[[], object]) -> int:
        change()
        registry = store.registry()
        assert registry is not None
        return registry.revision

    changes: list[Callable[[], object]] = [
        lambda: store.tasks.add("moles", CLASSES, COSTS, actor="me"),
        lambda: store.models.add("moles", "mole", kind="external", actor="me"),
        lambda: store.calibration_sets.add("mole", calibration(), actor="me"),
        lambda: register_calibration(store, "mole", calibration(3), actor="me"),
        lambda: promote_calibrated(store, "mole", actor="me"),
        lambda: store.heads.publish("mole", head(), environment=None, actor="me"),
        lambda: store.heads.rollback("mole", environment=None, actor="me"),
        lambda: store.environments.ensure("site-z", limit=9),
        lambda: store.tokens.create("ci", [Scope.READ], actor="me"),
        lambda: store.tokens.revoke("ci", actor="me"),
        lambda: store.heads.pin("mole", environment=None, reason="held", actor="me"),
        lambda: store.heads.unpin("mole", environment=None, actor="me"),
        lambda: store.recommendations.attach("moles", recommendation(), actor="me"),
    ]
    revisions = [revision_after(change) for change in changes]
    assert all(later > earlier for earlier, later in itertools.pairwise(revisions))

    last = revisions[-1]
    assert store.registry(last) is None
    assert store.registry(last - 1) is not None
    for harmless in (
        lambda: store.environments.ensure("site-z", limit=9),
        lambda: store.predictions.append([entry("r1")]),
        lambda: store.tasks.get("moles"),
        lambda: store.interviews.start(interview(), task="moles", actor="me"),
        lambda: store.jobs.submit("validate", {}, actor="me"),
        lambda: store.jobs.claim("me", lease_seconds=60),
    ):
        harmless()
        assert store.registry(last) is None


def test_the_registry_knows_every_token_that_is_not_revoked(store: Store):
    soon = datetime.now(UTC) + timedelta(milliseconds=200)
    _, brief = store.tokens.create("brief", [Scope.READ], actor="me", expires_at=soon)
    token, secret = store.tokens.create("ci", [Scope.READ], actor="me")
    store.tokens.create("gone", [Scope.READ], actor="me")
    store.tokens.revoke("gone", actor="me")
    time.sleep(0.25)
    registry = store.registry()
    assert registry is not None
    # Whether one has expired is asked of the clock of whoever serves, each time.
    assert registry.tokens.keys() == {hash_secret(secret), hash_secret(brief)}
    assert registry.tokens[hash_secret(secret)] == token


@sqlite_only
def test_a_refused_change_leaves_the_revision(store: Store):
    add_model(store)
    before = store.registry()
    assert before is not None
    with pytest.raises(ConflictError):
        store.tasks.add("lesions", CLASSES, COSTS, actor="me")
    assert store.registry(before.revision) is None
