"""The kind `retrain`: from a folder of images to a model that is registered once, evaluated and compared."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.develop.training import run
from lifelong_core.develop.training.recipe import Optimisation, Recipe
from lifelong_core.develop.training.result import TrainingResult
from lifelong_core.images.preprocessing_digest import preprocessing_digest
from lifelong_core.promotion import PromotionReport
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConflictError, InvalidInputError
from lifelong_monitor.jobs.kinds import after_training, retrain
from lifelong_monitor.jobs.kinds.after_training import AfterTraining
from lifelong_monitor.jobs.kinds.localization import compare_places
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.develop.features import conftest as extractors
from tests.unit.develop.features.drawn import draw_images
from tests.unit.monitor.population import CLASS_NAMES, COSTS
from tests.unit.monitor.recommendations import attach

RECIPE = Recipe(
    architecture="test_resnet",
    initial_weights="random",
    image_size=20,
    optimisation=Optimisation(epochs=2, batch_size=32, learning_rate=0.003),
)

Run = Callable[..., dict[str, Any]]
weights_file, backbone, extractor = extractors.weights_file, extractors.backbone, extractors.extractor


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roots") / "lesions"
    draw_images(folder, 180, classes=CLASS_NAMES)
    return folder


@pytest.fixture(scope="module", autouse=True)
def trained_once() -> Iterator[None]:
    """A training is a function of recipe and images, and takes seconds."""
    kept: dict[str, run.TrainingOutcome] = {}
    train = run.run_training

    def remember(task: str, recipe: Recipe, *arguments: Any, **named: Any) -> run.TrainingOutcome:
        if recipe.to_json() not in kept:
            kept[recipe.to_json()] = train(task, recipe, *arguments, **named)
        return kept[recipe.to_json()]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "run_training", remember)
        yield


@pytest.fixture(autouse=True)
def few_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both models look is compared on six images."""
    monkeypatch.setattr(after_training, "compare_places", partial(compare_places, most=6))


@pytest.fixture
def task(store: Store) -> None:
    store.tasks.add("lesions", CLASS_NAMES, COSTS, actor="tests")


def claimed(store: Store, kind: str) -> Job:
    while (job := store.jobs.claim("tests", lease_seconds=600)) is not None:
        if job.kind == kind:
            return job
        store.jobs.succeed(job, {})
    raise AssertionError(kind)


@pytest.fixture
def submit(
    store: Store, settings: Settings, task: None, images: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Job]:
    """Submit and claim a job; arguments are fields of its payload."""
    monkeypatch.setenv("LIFELONG_IMAGE_ROOTS", f'["{images.parent}"]')
    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(settings.data_directory))

    def submit_job(**payload: Any) -> Job:
        given = {
            "task": "lesions",
            "model": "net",
            "path": str(images),
            "recipe": RECIPE.to_document(),
            "replicates": 50,
        }
        store.jobs.submit("retrain", given | payload, actor="ann")
        return claimed(store, "retrain")

    return submit_job


@pytest.fixture
def do(store: Store, submit: Callable[..., Job]) -> Run:
    return lambda **payload: work_of("retrain")(store, submit(**payload))


def test_a_first_model_is_trained_evaluated_and_told_to_the_knowledge_base(
    store: Store, settings: Settings, do: Run
) -> None:
    attach(store, AcceptanceThreshold(metric="TPR", class_index=0, value=0.01))
    found = do()
    assert found["model"] == "net@1"
    training = store.trainings.get("net@1")
    result = TrainingResult.from_json(store.artifacts.get(training.result))
    assert (found["result"], training.recipe) == (training.result, RECIPE)
    assert sum(split.images for split in result.splits.values()) == 180
    assert store.models.get("net").preprocessing == result.preprocessing
    (calibration,) = store.calibration_sets.list("net@1")
    assert calibration.preprocessing_digest == preprocessing_digest(result.preprocessing)
    test = LabelledSet.from_bytes(store.artifacts.get(training.test_set))
    assert test.labelled.samples == result.splits["test"].images
    assert all(name.endswith(".png") for name in test.metadata["image"])
    (evaluation,) = store.evaluations.list("net@1")
    assert evaluation.samples == test.labelled.samples
    assert evaluation.accepted == found["evaluation"]["accepted"]
    assert (found["head"], found["promotion"], found["fingerprint"]) == (1, None, None)
    (warning,) = found["warnings"]
    assert "name no extractor" in warning
    (entry,) = store.knowledge.get("lesions").entry.trainings
    assert entry.performance["BA"] == (found["performance"]["BA"],)
    assert (entry.architecture, entry.hyperparameters["model"]) == ("test_resnet", "net@1")
    job = store.jobs.get(training.job_id)
    assert [(job.progress or {})[name] for name in ("phase", "fraction")] == ["evaluating", 1.0]
    assert any("epoch 2" in line.text for line in store.jobs.log(job.id))
    assert not any((settings.data_directory / "jobs").iterdir())


def test_a_job_that_another_installation_goes_on_with_gives_no_head(
    store: Store, do: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach(store)
    monkeypatch.setattr(retrain, "preprocessing_digest", lambda _: "ab" * 32)
    found = do()
    assert (found["model"], found["head"], found["evaluation"]) == ("net@1", None, None)
    assert any("another preprocessing" in warning for warning in found["warnings"])
    assert store.registry().heads == {}


def test_a_later_model_is_compared_with_the_promoted_one_on_its_test_images(store: Store, do: Run) -> None:
    do()
    attach(store)
    found = do(recipe=RECIPE.model_copy(update={"seed": 1}).to_document())
    assert (found["model"], found["promotion"]["against"]) == ("net@2", "net@1")
    training = store.trainings.get("net@2")
    report = PromotionReport.from_json(store.artifacts.get(training.report or ""))
    assert (report.new.reference, report.current.reference) == ("net@2", "net@1")
    before = TrainingResult.from_json(store.artifacts.get(store.trainings.get("net@1").result))
    assert before.data == report.current.trained_on == report.new.trained_on
    # Another seed gives other splits.
    (warning,) = [text for text in report.warnings if "trained or calibrated on" in text]
    assert warning.startswith("net@1 was trained or calibrated on ")
    asked = {
        "task": "lesions",
        "model": "net@2",
        "against": "net@1",
        "recommendation_version": 1,
        "labelled_set": training.test_set,
        "replicates": 20,
    }
    store.jobs.submit("compare", asked, actor="ann")
    again = work_of("compare")(store, claimed(store, "compare"))
    assert warning in PromotionReport.from_json(store.artifacts.get(again["result"])).warnings
    assert report.localization.images == 6
    page = store.artifacts.get(training.report_page or "").decode()
    assert "Promotion of net@2" in page
    assert "Do both look at the same places?" in page
    assert (
        report.new_result.samples
        == PairedSet.from_bytes(store.artifacts.get(training.test_set)).new.labelled.samples
    )
    assert store.tasks.get("lesions").promoted_model_id == store.models.get("net@1").id


def test_the_current_model_gets_the_logits_that_it_gave_to_the_same_images(store: Store, do: Run) -> None:
    attach(store)
    do()
    found = do()
    report = PromotionReport.from_json(store.artifacts.get(found["promotion"]["result"]))
    assert report.changes.changed == 0
    assert not any("trained" in text for text in report.warnings)
    both = PairedSet.from_bytes(store.artifacts.get(store.trainings.get("net@2").test_set))
    np.testing.assert_allclose(both.new.labelled.logits, both.current_logits, atol=1e-5)
    # Hardly trained models may find no place that matters; the correlations need none.
    means = [one.mean for one in report.localization.scores if one.mean is not None]
    assert means == pytest.approx([1] * len(means))
    assert [one.mean for one in report.localization.scores[-3:]] == pytest.approx([1] * 3)


def test_a_job_that_is_killed_after_its_report_shows_it_again(
    store: Store, do: Run, submit: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    attach(store)
    do()
    job = submit()
    with monkeypatch.context() as killed:
        killed.setattr(AfterTraining, "fingerprint", die)
        with pytest.raises(KeyboardInterrupt):
            work_of("retrain")(store, job)
    before = store.trainings.get("net@2")
    found = work_of("retrain")(store, job)
    assert (found["promotion"]["against"], found["promotion"]["result"]) == ("net@1", before.report)
    assert store.trainings.get("net@2") == before


def die(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", ["calibrate", "evaluate", "compare", "fingerprint", "add_to_knowledge"])
def test_a_job_that_is_killed_between_two_steps_registers_one_model(
    store: Store, submit: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    attach(store)
    job = submit()

    with monkeypatch.context() as killed:
        killed.setattr(AfterTraining, step, die)
        with pytest.raises(KeyboardInterrupt):
            work_of("retrain")(store, job)
    with monkeypatch.context() as counted:
        counted.setattr(retrain, "develop_module", None)
        found = work_of("retrain")(store, job)
    assert found["model"] == "net@1"
    assert [model.reference for model in store.models.list()] == ["net@1"]
    assert (found["head"], len(store.evaluations.list("net@1"))) == (1, 1)
    assert len(store.knowledge.get("lesions").entry.trainings) == 1
    assert len(store.calibration_sets.list("net@1")) == 1


def test_images_of_a_source_are_trained_on_and_the_transfer_is_noted(
    store: Store, do: Run, images: Path
) -> None:
    draw_images(images.parent / "moles", 90, classes=("left", "right"))
    recipe = RECIPE.model_copy(update={"scenario": "co_training", "source": "moles"})
    found = do(recipe=recipe.to_document(), source_path=str(images.parent / "moles"))
    (entry,) = store.knowledge.get("lesions").entry.trainings
    assert (entry.scenario, entry.source) == ("co_training", "moles")
    assert store.trainings.get(found["model"]).recipe == recipe
    with pytest.raises(InvalidInputError) as refused:
        do(recipe=recipe.to_document(), source_path="/etc")
    assert refused.value.field == "source_path"


def test_the_task_is_fingerprinted_once_for_the_same_number_of_images(
    store: Store,
    do: Run,
    extractor: ExtractorReference,
    weights_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "extractor.npz").write_bytes(extractor.to_bytes())
    monkeypatch.setenv("LIFELONG_FINGERPRINT_EXTRACTOR", str(tmp_path / "extractor.npz"))
    monkeypatch.setenv("LIFELONG_FINGERPRINT_WEIGHTS", str(weights_file))
    first = do()
    (record,) = store.knowledge.get("lesions").fingerprints
    assert (record.digest, record.samples) == (first["fingerprint"], 180)
    monkeypatch.delenv("LIFELONG_FINGERPRINT_EXTRACTOR")
    assert do()["fingerprint"] == record.digest


def test_an_attempt_whose_claim_is_over_registers_nothing(store: Store, submit: Callable[..., Job]) -> None:
    job = submit()
    store.jobs.release(job)
    assert claimed(store, "retrain").token > job.token
    with pytest.raises(ConflictError):
        work_of("retrain")(store, job)
    assert store.models.list() == []


def test_without_a_recommendation_the_model_is_registered_with_a_warning(store: Store, do: Run) -> None:
    found = do()
    assert found["evaluation"] is None
    assert any("lifelong recommend --attach lesions" in warning for warning in found["warnings"])
    assert store.models.get("net@1").calibration_set_id is not None


def test_what_does_not_fit_is_named(store: Store, do: Run, tmp_path: Path) -> None:
    for changes, field in (
        ({"path": str(tmp_path)}, "path"),
        ({"path": None}, "document"),
        ({"recipe": RECIPE.model_copy(update={"architecture": "resnot"}).to_document()}, "architecture"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            do(**changes)
        assert refused.value.field == field
    assert store.models.list() == []
