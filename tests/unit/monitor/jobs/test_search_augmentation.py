"""The kind `search_augmentation`: the policy is kept with its task, and another task can take it over."""

from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.knowledge.transferable import searched_policy
from lifelong_core.develop.training.recipe import AugmentationPolicy, Optimisation, Recipe
from lifelong_core.develop.training.result import SearchOutcome
from lifelong_core.store import Store
from lifelong_core.store.trainings.asking import complete_retraining
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.develop.features.drawn import draw_images
from tests.unit.monitor.population import CLASS_NAMES, COSTS

RECIPE = Recipe(
    architecture="test_resnet",
    initial_weights="random",
    image_size=20,
    optimisation=Optimisation(epochs=3, batch_size=16, learning_rate=0.01),
)


@pytest.fixture
def payload(
    store: Store, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    folder = tmp_path / "roots" / "lesions"
    draw_images(folder, 90, classes=CLASS_NAMES)
    monkeypatch.setenv("LIFELONG_IMAGE_ROOTS", f'["{folder.parent}"]')
    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(settings.data_directory))
    store.tasks.add("lesions", CLASS_NAMES, COSTS, actor="tests")
    return {"task": "lesions", "path": str(folder), "recipe": RECIPE.to_document(), "trials": 2}


def run(store: Store, payload: dict[str, Any]) -> dict[str, Any]:
    store.jobs.submit("search_augmentation", payload, actor="ann")
    while (job := store.jobs.claim("tests", lease_seconds=600)) is not None:
        if job.kind == "search_augmentation":
            return work_of("search_augmentation")(store, job)
        store.jobs.succeed(job, {})
    raise AssertionError


def test_the_policy_is_kept_with_its_task_and_taken_over_by_another(
    store: Store, payload: dict[str, Any]
) -> None:
    found = run(store, payload)
    outcome = SearchOutcome.from_json(store.artifacts.get(found["result"]))
    entry = store.knowledge.get("lesions").entry
    assert searched_policy(entry) == outcome.policy == AugmentationPolicy.from_document(found["policy"])
    assert outcome.policy.searched_on == "lesions"
    assert entry.card.samples == 90
    store.tasks.add("moles", CLASS_NAMES, COSTS, actor="tests")
    asked = complete_retraining(store, "moles", suggestion=found["suggestion"])
    assert asked.recipe.augmentation == outcome.policy
    assert asked.recipe.source == "lesions"


def test_a_task_that_nobody_knows_is_refused(store: Store, payload: dict[str, Any]) -> None:
    with pytest.raises(NotFoundError):
        run(store, payload | {"task": "nothing", "trials": 10**9})
