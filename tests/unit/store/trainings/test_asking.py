"""From what a person asks for to the payload of a job, and to its plan."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.develop.training.recipe import Optimisation, Recipe
from lifelong_core.images.image_counts import count_images
from lifelong_core.store import Store
from lifelong_core.store.trainings.asking import (
    StatedFacts,
    complete_retraining,
    plan_retraining,
    retraining_payload,
)
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.develop.training.results import make_result
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, calibration

BASE = Recipe(architecture="resnet10t", image_size=32, initial_weights="random")


@pytest.fixture(autouse=True)
def source(store: Store) -> None:
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    trained = Training(architecture="convnext_tiny", performance={"BA": (0.8,)})
    card = TaskCard(name="moles", classes=2, samples=500)
    store.knowledge.put(KnowledgeEntry(card=card, trainings=(trained,)), actor="tests")


def plan(store: Store, folder: Path, *, facts: StatedFacts = StatedFacts(), **changes: Any) -> Any:  # noqa: B008
    settings = Settings(data_directory=folder).model_copy(update=changes.pop("settings", {}))
    asked = complete_retraining(store, "lesions", **({"recipe": BASE} | changes))
    return plan_retraining(store, settings, asked, facts)


@sqlite_only
def test_a_suggestion_becomes_a_recipe_and_the_model_gets_the_name_in_use(store: Store) -> None:
    asked = complete_retraining(store, "lesions", suggestion="architecture:moles", recipe=BASE)
    assert (asked.recipe.architecture, asked.recipe.source) == ("convnext_tiny", "moles")
    assert asked.model == "lesions"
    add_model(store, "older")
    add_model(store, "newer")
    assert complete_retraining(store, "lesions").model == "newer"
    add_serving_model(store)
    add_model(store, "newest")
    assert complete_retraining(store, "lesions").model == "dermatology"
    assert complete_retraining(store, "lesions", model="own").model == "own"
    payload = retraining_payload(asked, source_path=None, path="/data")
    assert Recipe.from_document(payload["recipe"]) == asked.recipe
    assert (payload["path"], payload["source_path"]) == ("/data", None)


@sqlite_only
def test_what_cannot_be_asked_for_is_named(store: Store) -> None:
    prevalence = Optimisation(sampling="prevalence", target_prevalence=(0.5, 0.5))
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"suggestion": "pretraining:nothing"}, NotFoundError, "suggestion"),
        ({"suggestion": "moles"}, InvalidInputError, "suggestion"),
        ({"suggestion": "augmentation:moles"}, InvalidInputError, "suggestion"),
        ({"recipe": Recipe(scenario="pretraining", source="lesions")}, InvalidInputError, "suggestion"),
        (
            {"recipe": Recipe(optimisation=prevalence)},
            InvalidInputError,
            "recipe.optimisation.target_prevalence",
        ),
    ]
    for changes, error, field in wrong:
        with pytest.raises(error) as refused:
            complete_retraining(store, "lesions", **changes)
        assert getattr(refused.value, "field", None) == field
    with pytest.raises(NotFoundError):
        complete_retraining(store, "nothing")
    asked = complete_retraining(store, "lesions", suggestion="pretraining:moles")
    with pytest.raises(InvalidInputError, match="images of moles") as missing:
        retraining_payload(asked, source_path=None, path="/data")
    assert missing.value.field == "source_data"
    assert "architecture:moles" in (missing.value.hint or "")


@sqlite_only
def test_images_are_counted_else_stated_else_taken_from_the_card(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    for number in range(12):
        (folder / f"{number}.png").touch()
    (folder / "notes.txt").touch()
    table = tmp_path / "images.csv"
    table.write_text("path,label\n" + "".join(f"{n}.png,a\n" for n in range(7)))
    assert (count_images(folder.parent), count_images(table), count_images(tmp_path / "no.zip")) == (
        12,
        7,
        None,
    )
    assert (count_images(folder, most=12), count_images(folder, most=11)) == (12, None)
    facts = StatedFacts(path=str(folder.parent))
    assert sum(plan(store, tmp_path, facts=facts).splits.values()) == 12
    assert sum(plan(store, tmp_path, facts=replace(facts, images=200)).splits.values()) == 200
    unknown = plan(store, tmp_path, facts=replace(facts, most_counted=3))
    assert unknown.splits is None
    assert any("number of images" in text for text in unknown.missing)
    store.knowledge.put(KnowledgeEntry(card=TaskCard(name="lesions", classes=3, samples=90)), actor="tests")
    assert sum(plan(store, tmp_path).splits.values()) == pytest.approx(90, abs=1)


@sqlite_only
def test_the_plan_says_what_is_missing(store: Store, tmp_path: Path) -> None:
    found = plan(
        store,
        tmp_path,
        suggestion="pretraining:moles",
        facts=StatedFacts(images=600),
        settings={"training_devices": ()},
    )
    for text in (
        "images of moles",
        "Without them, it can give the architecture convnext_tiny",
        "lifelong recommend --attach lesions",
        "LIFELONG_TRAINING_DEVICES is empty",
        "No monitor runs",
    ):
        assert any(text in sentence for sentence in found.missing), text
    assert found.source_splits == {"training": 450, "validation": 50}


@sqlite_only
@pytest.mark.parametrize("runner", ["local", "ray"])
def test_the_plan_knows_the_memory_that_a_job_may_use_by_default(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    monkeypatch.setattr("lifelong_core.configuration.settings.usable_memory", lambda: 2**28)
    found = plan(store, tmp_path, facts=StatedFacts(images=3000), settings={"job_runner": runner})
    is_warned = any("LIFELONG_JOB_MEMORY_BYTES" in sentence for sentence in found.warnings)
    assert is_warned == (runner == "local")  # on Ray, without the setting, there is no limit


@sqlite_only
def test_weights_of_the_folder_are_found(store: Store, tmp_path: Path) -> None:
    recipe = BASE.model_copy(update={"initial_weights": "pretrained"})
    settings = {"training_weights": tmp_path}
    facts = StatedFacts(images=3000)
    before = plan(store, tmp_path, recipe=recipe, settings=settings, facts=facts)
    assert any("LIFELONG_TRAINING_WEIGHTS" in text for text in before.warnings)
    (tmp_path / "resnet10t.safetensors").touch()
    assert plan(store, tmp_path, recipe=recipe, settings=settings, facts=facts).warnings == ()


def test_the_speed_of_an_earlier_training_is_taken(store: Store, tmp_path: Path) -> None:
    result = make_result(BASE, images=300, seconds=2.0)
    store.jobs.submit("retrain", {}, actor="tests")
    job = store.jobs.claim("monitor", lease_seconds=60)
    assert job is not None
    store.trainings.record(
        "lesions",
        "net",
        onnx=b"graph",
        preprocessing=result.preprocessing,
        recipe=BASE,
        result=result.to_json().encode(),
        calibration=calibration(),
        test_set=b"test",
        job_id=job.id,
        actor="tests",
    )
    facts = StatedFacts(images=1000)
    assert "a guess, 60 s" in plan(store, tmp_path, facts=facts).duration.explanation, "the job goes on"
    store.jobs.succeed(job, {})
    measured = plan(store, tmp_path, facts=facts).duration
    assert "as the last training here" in measured.explanation
    assert (measured.basis, measured.images_per_second) == ("measured", 150.0)
    stated = plan(store, tmp_path, facts=replace(facts, images_per_second=10.0)).duration
    assert (stated.basis, stated.images_per_second) == ("stated", 10.0)
    other = BASE.model_copy(update={"architecture": "resnet34"})
    assert plan(store, tmp_path, facts=facts, recipe=other).duration.basis == "guessed"
    larger = BASE.model_copy(update={"image_size": 64})
    assert plan(store, tmp_path, facts=facts, recipe=larger).duration.basis == "guessed"
    on_gpu = {"training_devices": ("cuda:0",)}
    assert plan(store, tmp_path, facts=facts, settings=on_gpu).duration.basis == "guessed"
