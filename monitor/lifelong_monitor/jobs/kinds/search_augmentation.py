"""The kind `search_augmentation`: the augmentation policy of a task, kept with it in the knowledge base."""

from typing import Annotated, Any

from pydantic import Field

from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.knowledge.entry import Training
from lifelong_core.develop.knowledge.transferable import INITIAL_WEIGHTS
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.result import SearchOutcome
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import NotFoundError
from lifelong_core.values.names import Name
from lifelong_monitor.jobs.kinds.fingerprint import check_held
from lifelong_monitor.jobs.kinds.images import ImageLocation, develop_module, images_of
from lifelong_monitor.jobs.running.context import open_context


class Payload(ImageLocation):
    """Labelled images of a task, and how to search."""

    task: Name
    """registered, or one of the knowledge base"""
    recipe: Recipe = Recipe()
    """of the model that scores the candidates"""
    trials: Annotated[int, Field(ge=1)] | None = None
    """sub-policies that are tried; None: the search's own number"""


def work(store: Store, job: Job) -> dict[str, Any]:
    """Search the policy, and add it to the entry of the task.

    Returns:
        `task`; `policy`: the policy as a document; `result`: digest of the `SearchOutcome`; `suggestion`: by which
        other tasks take the policy over; `warnings`.

    Raises:
        ConfigurationError: torch or the pretrained weights are not installed.
        InvalidInputError: images, recipe or device do not fit.
        NotFoundError: there is neither an entry nor a registered task of that name.
        ConflictError: another monitor has begun the job anew, or the entry comes from another institution.
    """
    settings, asked = Settings.load(), Payload.from_document(job.payload)
    with images_of(store, settings, asked) as images, open_context(store, job, settings) as context:
        outcome: SearchOutcome = develop_module("training.augmentation.search").search_policy(
            asked.task,
            asked.recipe,
            images,
            work_folder=context.folder,
            class_names=_class_names(store, asked.task),
            device=context.device,
            weights_folder=settings.training_weights,
            checkpoint=context.checkpoint(),
            on_checkpoint=context.save_checkpoint,
            on_progress=context.report,
            log=context.log,
            check_space=context.check_space,
            **({} if asked.trials is None else {"trials": asked.trials}),
        )
        count = sum(1 for entry in images.entries() if entry is not None)
    check_held(store, job)
    store.knowledge.add_training(
        asked.task, _training(asked.task, outcome), samples=count, actor=job.created_by
    )
    return {
        "task": asked.task,
        "policy": outcome.policy.to_document(),
        "result": store.artifacts.put(outcome.to_json().encode()),
        "suggestion": f"augmentation:{asked.task}",
        "warnings": list(outcome.warnings),
    }


def _class_names(store: Store, task: str) -> tuple[str, ...] | None:
    try:
        return store.tasks.get(task).class_names
    except NotFoundError:
        store.knowledge.get(task)  # which names no classes
        return None


def _training(task: str, outcome: SearchOutcome) -> Training:
    """The policy as a transfer of the task to itself, which no ranker is fitted on."""
    return Training(
        scenario="augmentation",
        source=task,
        architecture=outcome.recipe.architecture,
        hyperparameters={INITIAL_WEIGHTS: outcome.recipe.initial_weights, "seed": outcome.recipe.seed},
        augmentation=outcome.policy.to_document(),
        performance={"NLL": (outcome.loss_of_unchanged,)},
    )
