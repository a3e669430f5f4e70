"""The kind `fingerprint`: makes the fingerprints of a task from images, which are not kept."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from lifelong_core.develop.fingerprints.disclosure import disclosure
from lifelong_core.documents import FrozenDocument
from lifelong_core.errors import ConfigurationError, ConflictError, InvalidInputError
from lifelong_core.image_roots import find_root
from lifelong_core.names import Name
from lifelong_core.settings import Settings
from lifelong_core.store import Job, Store
from lifelong_core.store.knowledge.records import LOCAL

_FEATURES = "lifelong_core.develop.features"

ImageSource: TypeAlias = Any
"""`lifelong_core.develop.features.sources.entry.ImageSource`"""
TaskFingerprints: TypeAlias = Any
"""`lifelong_core.develop.features.result.TaskFingerprints`"""


class Payload(FrozenDocument):
    """Images of a task, as an upload or by their path, and what to make of them."""

    task: Name
    upload: str | None = None
    """digest of the artifact"""
    archive: Literal["tar", "tar.gz", "zip"] | None = None
    """form of the upload"""
    path: str | None = None
    """folder or file below one of `image_roots`"""
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

    @model_validator(mode="after")
    def _check_source(self) -> "Payload":
        if (self.upload is None) == (self.path is None) or (self.upload is None) != (self.archive is None):
            raise ValueError("expected either a path, or an upload and its form")
        return self


def work(store: Store, job: Job) -> dict[str, Any]:
    """Make the fingerprints with the extractor of the settings, store them, and take the facts over to the task card.

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
    with _images_of(store, settings, asked) as images:
        made = _fingerprint(settings, asked, images)
    # Not after the end of the claim: another attempt may have stored its own.
    held = store.jobs.get(job.id)
    if (held.token, held.state) != (job.token, job.state):
        raise ConflictError(f"the job {job.id} was lost: its claim has expired.", field="job")
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


def _fingerprint(settings: Settings, asked: Payload, images: ImageSource) -> TaskFingerprints:
    if settings.fingerprint_extractor is None:
        raise ConfigurationError(
            "the settings of the monitor name no extractor.",
            field="LIFELONG_FINGERPRINT_EXTRACTOR",
            hint="Make one with `lifelong fingerprint extractor make`, or get the one that your partners share.",
        )
    return _features("task").fingerprint_task(
        images,
        settings.fingerprint_extractor,
        settings.fingerprint_weights,
        kinds=asked.kinds,
        bins=asked.bins,
        samples=asked.samples,
        seed=asked.seed,
        most_unreadable=asked.most_unreadable,
    )


@contextmanager
def _images_of(store: Store, settings: Settings, asked: Payload) -> Generator[ImageSource, None, None]:
    """The source of the images; nothing of an upload is unpacked to the disk."""
    open_images = _features("sources.opening").open_images
    if asked.path is not None:
        root = find_root(asked.path, settings.image_roots)
        yield open_images(asked.path, labelled=asked.labelled, within=root)
        return
    with TemporaryDirectory(prefix="lifelong-") as folder, _open_upload(store, asked.upload or "") as number:
        # Archives are told by their names.
        link = Path(folder) / f"upload.{asked.archive}"
        link.symlink_to(f"/dev/fd/{number}")
        yield open_images(link, labelled=asked.labelled)


@contextmanager
def _open_upload(store: Store, digest: str) -> Generator[int, None, None]:
    """The descriptor of the uploaded archive."""
    if not store.artifacts.has(digest):
        raise InvalidInputError("the upload was deleted.", field="upload", hint="Send the images again.")
    with store.artifacts.open(digest) as file:
        yield file.fileno()


def _features(module: str) -> Any:
    """A module of `lifelong_core.develop.features`; imported by name, because only a job's process may load torch.

    Raises:
        ConfigurationError: torch or another library is not installed.
    """
    try:
        return import_module(f"{_FEATURES}.{module}")
    except ImportError as error:
        raise ConfigurationError(
            f"images cannot be fingerprinted here: {error}.",
            field="lifelong[develop]",
            hint='Install the libraries where jobs run: pip install "lifelong[develop]".',
        ) from error


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
