"""From the request for a retraining to the payload of its job, and to its plan."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lifelong_core.entities.registry import Model, Task
from lifelong_core.images.image_counts import count_images
from lifelong_core.values.errors import InvalidInputError, LifelongError, NotFoundError

if TYPE_CHECKING:
    from lifelong_core.configuration.settings import Settings
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry
    from lifelong_core.develop.training.plan import Speed, TrainingPlan
    from lifelong_core.develop.training.recipe import Recipe
    from lifelong_core.store.store import Store

KIND = "retrain"
"""Kind of the job."""
SEARCH_KIND = "search_augmentation"
_LOOKED_AT = 50
"""Newest trainings that are looked at for a measured speed."""


@dataclass(frozen=True, kw_only=True)
class Retraining:
    """A request for a retraining, complete and checked."""

    task: Task
    model: str
    """name of the model whose next version is trained"""
    recipe: "Recipe"
    source: "KnowledgeEntry | None"
    """entry of the source task; None: there is none"""


@dataclass(frozen=True, kw_only=True)
class StatedFacts:
    """Facts of a training that a person states beside its recipe.

    Attributes:
        images: of the task; None: they are counted at `path`, else taken from the task card.
        source_images: of the source task, the same.
        path: of the images, on the machine that asks.
        source_path: of those of the source task.
        images_per_second: of the training; None: measured in an earlier one, or guessed.
        most_counted: images that are counted at most; None: all.
    """

    images: int | None = None
    source_images: int | None = None
    path: str | None = None
    source_path: str | None = None
    images_per_second: float | None = None
    most_counted: int | None = None


def complete_retraining(
    store: "Store",
    task: str,
    *,
    recipe: "Recipe | None" = None,
    suggestion: str | None = None,
    model: str | None = None,
    measure: str = "BA",
) -> Retraining:
    """Complete a request: the recipe that follows the suggestion, and the name of the model.

    Args:
        store: the store.
        task: name of the registered task.
        recipe: how to train; None: the uninformed baseline. With a suggestion, what it leaves as it is.
        suggestion: `SCENARIO:SOURCE`; None: the recipe says all.
        model: name of the model whose next version is trained; None: that of the promoted model, else the task's.
        measure: acronym by which the source's best architecture is found.

    Raises:
        NotFoundError: there is no such task, or the knowledge base has no entry of the source.
        InvalidInputError: recipe and suggestion contradict each other, or the source holds nothing to transfer.
    """
    from lifelong_core.develop.training.from_suggestion import parse_suggestion, recipe_from_suggestion
    from lifelong_core.develop.training.recipe import Recipe

    described = store.tasks.get(task)
    asked = recipe or Recipe()
    source = None
    if suggestion is not None:
        scenario, name = parse_suggestion(suggestion)
        source = _entry_of(store, name, field="suggestion")
        asked = recipe_from_suggestion(scenario, source, asked, measure=measure)
    elif asked.source is not None:
        source = _known_entry(store, asked.source)
    _check_recipe(asked, described)
    return Retraining(
        task=described, model=model or _model_name(store, described), recipe=asked, source=source
    )


def retraining_payload(asked: Retraining, *, source_path: str | None, **location: Any) -> dict[str, Any]:
    """The payload of the job.

    Args:
        asked: from `complete_retraining`.
        source_path: of images of the source task; None: none are given.
        location: `path`, or `upload` and `archive` of the images, and further fields of the payload.

    Raises:
        InvalidInputError: the recipe trains on images of the source task and none are given, or the reverse.
    """
    from lifelong_core.develop.training.from_suggestion import check_source_data

    check_source_data(asked.recipe, asked.source, is_given=source_path is not None)
    return {
        "task": asked.task.name,
        "model": asked.model,
        "recipe": asked.recipe.to_document(),
        "source_path": source_path,
        **location,
    }


def plan_retraining(
    store: "Store", settings: "Settings", asked: Retraining, facts: StatedFacts
) -> "TrainingPlan":
    """The plan of the job, with these settings in place of the monitor's.

    Args:
        store: the store.
        settings: devices, limits and folders.
        asked: from `complete_retraining`.
        facts: what is known of the images.
    """
    from lifelong_core.develop.training.plan import Circumstances, plan_training

    recipe = asked.recipe
    images = facts.images or _count(facts.path, facts.most_counted) or _samples(store, asked.task.name)
    source_images = None
    if recipe.needs_source_data:
        source_images = facts.source_images or _count(facts.source_path, facts.most_counted)
        source_images = source_images or (None if asked.source is None else asked.source.card.samples)
    device = settings.training_devices[0] if settings.training_devices else "auto"
    known = Circumstances(
        images=images,
        source_images=source_images,
        classes=len(asked.task.class_names),
        device=device,
        speed=_speed(store, recipe, device, facts),
        other_seconds=tuple(_other_seconds(store)),
        has_weights_file=_has_weights(settings, recipe),
        memory_bytes=settings.job_memory_bytes
        if settings.job_runner == "ray"
        else settings.resolved_job_memory_bytes,
        free_disk_bytes=_free_disk(settings),
        missing=tuple(_missing(store, settings, asked, facts, images)),
    )
    return plan_training(asked.task.name, recipe, known)


def _entry_of(store: "Store", task: str, *, field: str) -> "KnowledgeEntry":
    try:
        return store.knowledge.get(task).entry
    except NotFoundError as error:
        error.field = field
        raise


def _known_entry(store: "Store", task: str) -> "KnowledgeEntry | None":
    try:
        return store.knowledge.get(task).entry
    except NotFoundError:
        return None


def _check_recipe(recipe: "Recipe", task: Task) -> None:
    if recipe.source == task.name:
        raise InvalidInputError(
            f"{task.name} is the task itself: nothing can be transferred from it.",
            field="suggestion",
            hint="Name another task of the knowledge base: `lifelong knowledge list`.",
        )
    prevalence, classes = recipe.optimisation.target_prevalence, len(task.class_names)
    if prevalence is not None and len(prevalence) != classes:
        raise InvalidInputError(
            f"expected {classes} shares, one for each class of {task.name}, got {len(prevalence)}.",
            field="recipe.optimisation.target_prevalence",
        )


def _model_name(store: "Store", task: Task) -> str:
    """The name of the promoted model, else of the newest one of the task, else of the task."""
    models: list[Model] = [one for one in store.models.list() if one.task_id == task.id]
    promoted = [one.name for one in models if one.id == task.promoted_model_id]
    return (promoted or [one.name for one in reversed(models)] or [task.name])[0]


def _count(path: str | None, most: int | None) -> int | None:
    return None if path is None else count_images(Path(path), most=most)


def _samples(store: "Store", task: str) -> int | None:
    known = _known_entry(store, task)
    return None if known is None else known.card.samples


def _has_weights(settings: "Settings", recipe: "Recipe") -> bool:
    folder = settings.training_weights
    names = [f"{recipe.architecture}{suffix}" for suffix in (".safetensors", ".pth")]
    return folder is not None and any((folder / name).is_file() for name in names)


def _free_disk(settings: "Settings") -> int | None:
    try:
        free = shutil.disk_usage(settings.data_directory).free
    except OSError:
        return None
    return max(0, free - settings.job_disk_bytes)


def _missing(
    store: "Store", settings: "Settings", asked: Retraining, facts: StatedFacts, images: int | None
) -> list[str]:
    from lifelong_core.develop.training.from_suggestion import instead_of_images

    recipe, task, missing = asked.recipe, asked.task.name, list[str]()
    if images is None:
        missing.append(f"The number of images of {task} is not known: give their path, or state it.")
    if recipe.needs_source_data and facts.source_path is None:
        instead = instead_of_images(asked.source)
        missing.append(
            f"The scenario {recipe.scenario} trains on images of {recipe.source}, and none are given."
            f" {instead}".rstrip()
        )
    if store.recommendations.current(task) is None:
        missing.append(
            f"The task has no recommendation: the model would be trained, but neither evaluated nor compared."
            f" Attach one: `lifelong recommend --attach {task}`."
        )
    if not settings.training_devices:
        missing.append("LIFELONG_TRAINING_DEVICES is empty: a monitor with these settings trains nothing.")
    if all(monitor.is_lost for monitor in store.monitors.list(visits=False)):
        missing.append("No monitor runs, and monitors do the jobs: `lifelong monitor`.")
    return missing


def _speed(store: "Store", recipe: "Recipe", device: str, facts: StatedFacts) -> "Speed | None":
    """Images per second as stated, or as measured in the newest training of this architecture and device."""
    from lifelong_core.develop.training.plan import Speed
    from lifelong_core.develop.training.result import TrainingResult

    if facts.images_per_second is not None:
        return Speed(facts.images_per_second, "stated")
    for training in store.trainings.list(_LOOKED_AT):
        try:
            result = TrainingResult.from_json(store.artifacts.get(training.result))
        except LifelongError:
            continue
        if not _is_comparable(recipe, result.recipe) or not _is_on(device, result.device):
            continue
        seconds = [epoch.seconds for epoch in result.epochs if epoch.phase == "training"]
        images = result.splits["training"].images * (1 + (result.recipe.scenario == "co_training"))
        if sum(seconds) > 0:
            return Speed(images * len(seconds) / sum(seconds), "measured", f"job {training.job_id}")
    return None


def _other_seconds(store: "Store") -> Iterator[float]:
    """What the newest finished trainings took beside their epochs, as far as their jobs are kept."""
    from lifelong_core.develop.training.result import TrainingResult

    for training in store.trainings.list(_LOOKED_AT):
        try:
            result = TrainingResult.from_json(store.artifacts.get(training.result))
            job = store.jobs.get(training.job_id)
        except LifelongError:
            continue
        # An attempt that went on from a checkpoint took less than its epochs.
        if job.started_at is not None and job.finished_at is not None and job.attempts == 1:
            taken = (job.finished_at - job.started_at).total_seconds()
            yield max(0.0, taken - sum(epoch.seconds for epoch in result.epochs))


def _is_comparable(asked: "Recipe", trained: "Recipe") -> bool:
    sizes = asked.image_size in (None, trained.image_size)
    co_trained = (asked.scenario == "co_training") == (trained.scenario == "co_training")
    return sizes and co_trained and asked.architecture == trained.architecture


def _is_on(device: str, trained_on: str) -> bool:
    """Whether a training ran on this kind of device; `auto` counts as any."""
    return device == "auto" or device.startswith("cpu") == trained_on.lower().startswith("cpu")
