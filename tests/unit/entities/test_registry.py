from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from lifelong_core.store import HeadRecord, Model, Registry, Rollout, Task
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests.unit.store.samples import CLASSES, COSTS, head

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def model(model_id: int, name: str, version: int, task_id: int = 1) -> Model:
    return Model(
        id=model_id,
        task_id=task_id,
        name=name,
        version=version,
        kind="external",
        artifact=None,
        preprocessing=None,
        calibration_set_id=None,
        created_at=NOW,
    )


def registry(
    *models: Model, promoted: dict[int, int | None], heads: dict[tuple[int, str | None], int] | None = None
):
    tasks = {
        one: Task(
            id=one,
            name=f"task-{one}",
            class_names=CLASSES,
            costs=COSTS,
            promoted_model_id=promoted[one],
            created_at=NOW,
        )
        for one in promoted
    }
    records = {
        key: HeadRecord(model_id=key[0], version=version, head=head(), created_at=NOW, created_by="me")
        for key, version in (heads or {}).items()
    }
    return Registry(
        1,
        MappingProxyType(tasks),
        MappingProxyType({one.id: one for one in models}),
        MappingProxyType(records),
        frozenset(),
    )


def test_a_reference_resolves_to_the_exact_the_promoted_or_the_newest_version():
    known = registry(model(1, "a", 1), model(2, "a", 2), model(3, "b", 9), model(4, "b", 10), promoted={1: 1})
    assert known.resolve_model(None).id == 1
    assert known.resolve_model("a").id == 1
    assert known.resolve_model("a@2").id == 2
    assert known.resolve_model("b").id == 4


@pytest.mark.parametrize("reference", ["c", "a@3", "a@", "@1", "a@01", ""])
def test_an_unknown_reference_is_not_found(reference: str):
    known = registry(model(1, "a", 1), promoted={1: 1})
    if reference == "a@":
        assert known.resolve_model(reference).id == 1
        return
    with pytest.raises(NotFoundError, match="no model"):
        known.resolve_model(reference)


def test_no_reference_needs_exactly_one_promoted_model():
    two = registry(model(1, "a", 1), model(2, "b", 1, task_id=2), promoted={1: 1, 2: 2})
    with pytest.raises(InvalidInputError, match="a, b"):
        two.resolve_model(None)
    with pytest.raises(NotFoundError, match="no model is served yet"):
        registry(model(1, "a", 1), promoted={1: None}).resolve_model(None)


def test_an_environment_uses_its_own_head_or_the_default_one():
    known = registry(model(1, "a", 1), promoted={1: 1}, heads={(1, None): 1, (1, "site-a"): 2})
    assert known.head_for(known.models[1], "site-a").version == 2
    assert known.head_for(known.models[1], "site-b").version == 1
    with pytest.raises(ConflictError, match="has no head"):
        registry(model(1, "a", 1), promoted={1: 1}).head_for(known.models[1], "site-a")


def test_a_model_has_one_role_and_requests_of_earlier_stages_are_found():
    models = [
        model(1, "a", 1),
        model(2, "a", 2),
        model(3, "b", 1),
        model(4, "a", 3),
        model(5, "z", 1, task_id=2),
    ]
    known = replace(
        registry(*models, promoted={1: 1, 2: None}),
        rollouts=MappingProxyType(
            {
                1: Rollout(
                    id=7,
                    task_id=1,
                    model_id=2,
                    stage="canary",
                    share=0.5,
                    started_at=NOW,
                    started_by="me",
                    changed_at=NOW,
                )
            }
        ),
        answering=MappingProxyType({1: frozenset({1, 2, 3, 99})}),  # 99 was removed
    )
    roles = [known.role(one.id) for one in models]
    assert roles == ["promoted", "canary", "former", "other", "other"]
    first = models[0]
    assert known.possible_models(first, None) == {1, 2, 3}
    assert known.possible_models(first, "a") == {1, 2}
    assert known.possible_models(first, "a@1") == {1}
    assert known.possible_models(models[4], "z") == {5}
