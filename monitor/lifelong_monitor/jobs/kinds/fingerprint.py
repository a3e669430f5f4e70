"""The kind `fingerprint`: makes the fingerprints of a task from images, which are not kept."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.fingerprints.disclosure import disclosure
from lifelong_core.entities.develop.knowledge import LOCAL
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConfigurationError, ConflictError
from lifelong_core.values.names import Name
from lifelong_monitor.jobs.kinds.images import ImageLocation, ImageSource, develop_module, images_of

TaskFingerprints: TypeAlias = Any
"""`lifelong_core.develop.features.result.TaskFingerprints`"""


class Payload(ImageLocation):
    """Images of a task, as an upload or by their path, and the fingerprints to make."""

    task: Name
    kinds: tuple[str, ...] = ("histogram",)
    bins: Annotated[int, Field(ge=2)] = 100
    samples: Annotated[int, Field(ge=2)] = 10_000
    seed: Annotated[int, Field(ge=0)] = 0
    labelled: bool = True
    """whether sub-folders, the CSV column `label` and webdataset's labels are classes"""
    most_unreadable: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """largest share of the images that may be unreadable"""
    keywords: tuple[str, ...] = ()
    modality: str | None = None
    dataset: str | None = None


def work(store: Store, job: Job) -> dict[str, Any]:
    """Make the fingerprints with the extractor of the settings, store them, and copy the facts to the task card.

    Returns:
        `task`; `fingerprints`: kind, digest, size in bytes and disclosure of each; `card`: the task card; `warnings`;
        `report`: how they were made, with the unreadable images; `facts`: of the images.

    Raises:
        ConfigurationError: torch is not installed, or the settings name no extractor.
        InvalidInputError: the path is outside of `image_roots`, or what is there cannot be fingerprinted.
        NotFoundError: there is no such task.
        ConflictError: another monitor has begun the job anew.
    """
    settings, asked = Settings.load(), Payload.from_document(job.payload)
    with images_of(store, settings, asked, labelled=asked.labelled) as images:
        made = make_fingerprints(settings, asked, images)
    check_held(store, job)
    return store_fingerprints(store, job, asked, made)


def check_held(store: Store, job: Job) -> None:
    """Make sure that this attempt still holds the job: another one may have stored its own results.

    Raises:
        ConflictError: another monitor has begun the job anew.
    """
    held = store.jobs.get(job.id)
    if (held.token, held.state) != (job.token, job.state):
        raise ConflictError(f"the job {job.id} was lost: its claim has expired.", field="job")


def store_fingerprints(store: Store, job: Job, asked: Payload, made: TaskFingerprints) -> dict[str, Any]:
    """Store fingerprints, and copy the facts of the images to the task card; return the result of the job."""
    for fingerprint in made.fingerprints.values():
        store.knowledge.put_fingerprint(asked.task, fingerprint, actor=job.created_by)
    card, warnings = _update_card(store, asked, made.facts, actor=job.created_by)
    return {
        "task": asked.task,
        "fingerprints": [
            {
                "kind": kind,
                "digest": one.digest,
                "bytes": len(one.to_bytes()),
                "disclosure": disclosure(one).to_document(),
            }
            for kind, one in made.fingerprints.items()
        ],
        "card": card,
        "warnings": warnings,
        "report": made.report.to_document(),
        "facts": made.facts.to_document(),
    }


def make_fingerprints(settings: Settings, asked: Payload, images: ImageSource) -> TaskFingerprints:
    """The fingerprints of the images, with the extractor of the settings.

    Raises:
        ConfigurationError: torch is not installed, or the settings name no extractor.
        InvalidInputError: the images cannot be fingerprinted.
    """
    if settings.fingerprint_extractor is None:
        raise ConfigurationError(
            "the settings of the monitor name no extractor.",
            field="LIFELONG_FINGERPRINT_EXTRACTOR",
            hint="Make one with `lifelong fingerprint extractor make`, or get the one that your partners share.",
        )
    return develop_module("features.task").fingerprint_task(
        images,
        settings.fingerprint_extractor,
        settings.fingerprint_weights,
        kinds=asked.kinds,
        bins=asked.bins,
        samples=asked.samples,
        seed=asked.seed,
        most_unreadable=asked.most_unreadable,
    )


def _update_card(store: Store, asked: Payload, facts: Any, *, actor: str) -> tuple[dict[str, Any], list[str]]:
    """Take the facts over to the task card; an entry of another institution stays as it is.

    Returns:
        The card, and sentences on facts that do not fit it.
    """
    record = store.knowledge.get(asked.task)
    card = record.entry.card
    if record.origin != LOCAL:
        return card.to_document(), [f"The task card stays as it is: it comes from {record.origin}."]
    warnings: list[str] = []
    changes: dict[str, Any] = {
        "samples": facts.samples,
        "smallest_pixels": facts.smallest_pixels,
        "largest_pixels": facts.largest_pixels,
        "intrinsic_dimension": facts.intrinsic_dimension,
        "imbalance": facts.imbalance,
        "modality": asked.modality,
        "dataset": asked.dataset,
        "keywords": asked.keywords or None,
    }
    if facts.classes is not None and facts.classes != card.classes:
        del changes["imbalance"]
        warnings.append(
            f"The images have {facts.classes} classes, the task {card.classes}: the imbalance is not taken over."
        )
    known = {name: value for name, value in changes.items() if value is not None}
    changed = type(card).from_document({**card.to_document(), **known})
    if changed != card:
        store.knowledge.put(record.entry.model_copy(update={"card": changed}), actor=actor)
    return changed.to_document(), warnings
