"""The kind `retrain`: from labelled images and a recipe to a registered, evaluated and compared model."""

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.develop.training.progress import TrainingProgress
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.entities.registry import Task
from lifelong_core.images.preprocessing_digest import preprocessing_digest
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import Name
from lifelong_monitor.jobs.kinds.after_training import AfterTraining
from lifelong_monitor.jobs.kinds.fingerprint import check_held
from lifelong_monitor.jobs.kinds.images import (
    ImageLocation,
    ImageSource,
    develop_module,
    images_at,
    images_of,
)
from lifelong_monitor.jobs.kinds.kept_test_set import test_set_of
from lifelong_monitor.jobs.running.context import open_context


class Payload(ImageLocation):
    """Labelled images of a task, and how to train on them."""

    task: Name
    model: Name
    """whose next version the trained model becomes"""
    recipe: Recipe
    source_path: str | None = None
    """images of the source task, below one of `image_roots`"""
    replicates: Annotated[int, Field(ge=1)] = 1000
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95


def work(store: Store, job: Job) -> dict[str, Any]:
    """Train a model and register it, then calibrate, evaluate and compare it; the knowledge base gets the training.

    A restarted job goes on from its last checkpoint; after the registration it repeats the later steps, which is
    harmless.

    Returns:
        `task`, `model`: reference; `result`: digest of the `TrainingResult`; `head`: version of the default head;
        `evaluation`, `promotion`: digests and verdicts, null where there is none; `fingerprint`: digest;
        `performance`: by measure, on the test split; `warnings`: why a step was left out.

    Raises:
        ConfigurationError: torch or the pretrained weights are not installed.
        InvalidInputError: images, recipe or device do not fit.
        NotFoundError: there is no such task.
        ConflictError: another monitor has begun the job anew, or the name belongs to a model of another task.
    """
    settings, asked = Settings.load(), Payload.from_document(job.payload)
    task = store.tasks.get(asked.task)
    with images_of(store, settings, asked) as images, open_context(store, job, settings) as context:
        if store.trainings.of_job(job.id) is None:
            source = _source_of(settings, asked.source_path)
            outcome = develop_module("training.run").run_training(
                task.name,
                asked.recipe,
                images,
                class_names=task.class_names,
                source=source,
                device=context.device,
                weights_folder=settings.training_weights,
                work_folder=context.folder,
                checkpoint=context.checkpoint(),
                on_checkpoint=context.save_checkpoint,
                on_progress=context.report,
                log=context.log,
                check_space=context.check_space,
            )
            check_held(store, job)
            _register(store, job, asked, outcome)
        result = _follow_up(store, settings, job, asked, task, images)
        context.report(TrainingProgress(phase="evaluating", fraction=1.0, device=context.device))
        return result


def _source_of(settings: Settings, path: str | None) -> ImageSource | None:
    """Images of the source task.

    Raises:
        InvalidInputError: the path is outside of `image_roots`, or holds no images; the field is `source_path`.
    """
    if path is None:
        return None
    try:
        return images_at(settings, path)
    except InvalidInputError as error:
        error.field = "source_path"
        raise


def _register(store: Store, job: Job, asked: Payload, outcome: Any) -> None:
    printable = develop_module("features.sources.entry").printable
    names = [printable(name) for name in outcome.test.names]
    store.trainings.record(
        asked.task,
        asked.model,
        onnx=outcome.onnx,
        preprocessing=outcome.result.preprocessing,
        recipe=asked.recipe,
        result=outcome.result.to_json().encode(),
        calibration=replace(
            _labelled(outcome.calibration),
            preprocessing_digest=preprocessing_digest(outcome.result.preprocessing),
        ),
        test_set=test_set_of(_labelled(outcome.test), names),
        job_id=job.id,
        actor=job.created_by,
    )


def _labelled(split: Any) -> LabeledLogits:
    """The arrays of a split."""
    groups = None if split.groups is None else np.array(split.groups)
    return LabeledLogits(split.logits, split.labels, groups)


def _follow_up(
    store: Store, settings: Settings, job: Job, asked: Payload, task: Task, images: ImageSource
) -> dict[str, Any]:
    location = ImageLocation(upload=asked.upload, archive=asked.archive, path=asked.path)
    steps = AfterTraining.of(
        store, settings, job, task, location, replicates=asked.replicates, level=asked.level
    )
    head = steps.calibrate()
    evaluation = None if head is None else steps.evaluate()
    promotion = None if head is None else steps.compare(images)
    fingerprint = steps.fingerprint(images)
    performance = steps.add_to_knowledge()
    return {
        "task": task.name,
        "model": steps.model.reference,
        "result": steps.training.result,
        "head": head,
        "evaluation": evaluation,
        "promotion": promotion,
        "fingerprint": fingerprint,
        "performance": performance,
        "warnings": [*steps.result.warnings, *steps.warnings],
    }
