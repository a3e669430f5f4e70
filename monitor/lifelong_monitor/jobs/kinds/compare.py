"""The kind `compare`: the promotion report of a new model against the current model.

The job compares labelled logits of both models. After a training, the current model runs on the test images of the new
model (`compare_with_current`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import LONGEST_NAME, PairedSet
from lifelong_core.design.report.pages import validation_html
from lifelong_core.promotion import HeldOutCases, PromotionReport, SeenCases
from lifelong_core.promotion.document import LocalizationComparison, RuntimeCost
from lifelong_core.promotion.report import seen_warning
from lifelong_core.promotion.runtime_cost import measure_cost
from lifelong_core.store import Job, Model, Store
from lifelong_core.store.heads.calibration_sets import check_classes
from lifelong_core.values.arrays import Logits
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_monitor.jobs.kinds import model_facts
from lifelong_monitor.jobs.kinds.images import ImageSource, develop_module, images_at
from lifelong_monitor.jobs.kinds.kept_test_set import seen_cases
from lifelong_monitor.jobs.kinds.localization import compare_places
from lifelong_monitor.jobs.kinds.model_facts import OnnxClassifier, stored_classifier
from lifelong_monitor.jobs.kinds.promotion_reports import ModelCases, compare_registered, store_report

_AT_ONCE = 64
"""Images in memory."""
_MOST_NAMED = 3


class Payload(FrozenDocument):
    """The payload of the job."""

    task: str
    model: str = Field(description="Reference of the new model, name@version.")
    against: str = Field(description="Reference of the current model.")
    recommendation_version: int = Field(description="Of those that are attached to the task.")
    labelled_set: str = Field(description="Digest of the artifact: `PairedSet.to_bytes`.")
    origin: str = Field(default="", description="Where the cases come from, in words.")
    images: str | None = Field(
        default=None,
        description="Path of labelled images, to compare where both models look: of those with the names of the cases,"
        " of all if the cases have no names.",
    )
    replicates: Annotated[int, Field(ge=1)] = 1000
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95


def work(store: Store, job: Job) -> dict[str, Any]:
    """Compare both models as their default heads decide now; report and page become artifacts.

    The values of the new model become an evaluation, as those of a validation do, unless the cases are its own
    calibration set.

    Raises:
        InvalidInputError: the payload, or what it names, does not fit.
        NotFoundError: what it names does not exist.
    """
    asked = Payload.from_document(job.payload)
    new, current = store.models.get(asked.model), store.models.get(asked.against)
    data = PairedSet.from_bytes(store.artifacts.get(asked.labelled_set))
    labelled = data.new.labelled
    check_classes(labelled, store.tasks.get(asked.task))
    report = compare_registered(
        store,
        _known(store, new, labelled.logits),
        replace(_known(store, current, data.current_logits), seen=_seen(store, asked, data, new, current)),
        held_out_cases(data, origin=asked.origin),
        recommendation_version=asked.recommendation_version,
        localization=_places(store, asked, data, new, current),
        replicates=asked.replicates,
        level=asked.level,
    )
    if seen_warning(new.reference) not in report.warnings:
        result = report.new_result
        store.evaluations.put(
            new.reference,
            result=result.to_json().encode(),
            report=validation_html(result).encode(),
            labelled_set=data.new.to_bytes(),
            head=report.new.head,
            recommendation_version=asked.recommendation_version,
            accepted=result.accepted,
            samples=result.samples,
            job_id=job.id,
            actor=job.created_by,
        )
    return {"model": new.reference, "against": current.reference, **store_report(store, report)}


def _known(store: Store, model: Model, logits: Logits) -> ModelCases:
    """A model with its logits, and what is known of it."""
    return ModelCases(
        model=model,
        logits=logits,
        cost=model_facts.cost_on_grey(store, model),
        trained_on=model_facts.trained_on(store, model),
    )


def _seen(store: Store, asked: Payload, data: PairedSet, new: Model, current: Model) -> SeenCases | None:
    """The cases that the current model may have been trained on; None: they are no test split of a training here."""
    try:
        training = store.trainings.get(new.reference)
    except NotFoundError:
        return None
    if training.test_set != asked.labelled_set or data.names is None:
        return None
    return seen_cases(store, current, data.names.tolist(), data=model_facts.trained_on(store, new))


def _places(
    store: Store, asked: Payload, data: PairedSet, new: Model, current: Model
) -> LocalizationComparison | None:
    """Whether both models look at the same places of the given images; None: none are given.

    Raises:
        InvalidInputError: a model has no graph, no image is one of the cases, or the images cannot be read.
    """
    if asked.images is None:
        return None
    source = images_at(Settings.load(), asked.images)
    names = None if data.names is None else data.names.tolist()
    document = compare_places(store, new, current, source, names=names)
    if document is None:
        raise InvalidInputError(
            "the places that both models look at cannot be compared: a model runs elsewhere, or no image that can be"
            f" read in {asked.images[:200]!r} has a class of the task and the name of a case.",
            field="images",
            hint="Leave images out, or give the folder in which the cases have the names of the labelled set.",
        )
    return document


def held_out_cases(data: PairedSet, *, origin: str) -> HeldOutCases:
    """The cases of a paired set."""
    labelled: LabeledLogits = data.new.labelled
    return HeldOutCases(
        labels=labelled.labels,
        groups=labelled.groups,
        names=None if data.names is None else data.names.tolist(),
        metadata=data.new.metadata,
        origin=origin,
    )


def compare_with_current(
    store: Store,
    new: Model,
    current: Model,
    images: ImageSource,
    *,
    test: LabeledLogits,
    names: Sequence[str],
    trained_on: str,
    localization: LocalizationComparison | None = None,
    replicates: int,
    level: float,
) -> tuple[PairedSet, PromotionReport]:
    """Compare a trained model with the promoted one on its test images.

    Args:
        store: of both models.
        new: the trained model.
        current: the promoted model, with its stored graph and preprocessing.
        images: the source of the images.
        test: logits of the new model on the N test images, and their classes.
        names: N names of the test images within the source.
        trained_on: digest of the new model's data.
        localization: whether both look at the same places.
        replicates: number of resampled data sets.
        level: nominal coverage of the intervals.

    Returns:
        The test set with the logits of both models, and the report.

    Raises:
        LifelongError: an image can no longer be read, or the stored graph cannot be run.
    """
    classifier, first = stored_classifier(store, current), names[:1]
    data = PairedSet(
        LabelledSet(test),
        _logits_of(classifier, images, names),
        np.array([name[-LONGEST_NAME:] for name in names]),
        (new.reference, current.reference),
    )
    report = compare_registered(
        store,
        ModelCases(
            model=new,
            logits=test.logits,
            cost=_cost(store, new, stored_classifier(store, new), images, first),
            trained_on=trained_on,
        ),
        ModelCases(
            model=current,
            logits=data.current_logits,
            cost=_cost(store, current, classifier, images, first),
            trained_on=model_facts.trained_on(store, current),
            seen=seen_cases(store, current, names, data=trained_on),
        ),
        held_out_cases(data, origin=f"test split of the training of {new.reference}"),
        localization=localization,
        replicates=replicates,
        level=level,
    )
    return data, report


def _logits_of(classifier: OnnxClassifier, images: ImageSource, names: Sequence[str]) -> NDArray[np.float32]:
    """Logits (N, C) of the images of these names."""
    logits_of: dict[str, NDArray[np.float32]] = {}
    decoded = _decoded(classifier, images, names)
    while batch := list(islice(decoded, _AT_ONCE)):
        # Without a resize, images have sizes of their own.
        for _, group in groupby(sorted(batch, key=lambda one: one[1].shape), key=lambda one: one[1].shape):
            several = list(group)
            logits = classifier.logits(np.stack([pixels for _, pixels in several]))
            logits_of.update(zip((name for name, _ in several), logits, strict=True))
    return np.stack([logits_of[name] for name in names])


def _decoded(
    classifier: OnnxClassifier, images: ImageSource, names: Sequence[str]
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Name and preprocessed pixels of each of these images, in any order.

    Raises:
        InvalidInputError: one is not there any more, or cannot be read.
    """
    decode = develop_module("features.extraction").decode_entry
    limits = develop_module("features.sources.limits").DEFAULT_LIMITS
    printable = develop_module("features.sources.entry").printable
    wanted = set(names)
    entries = [one for one in images.entries() if one is not None and printable(one.name) in wanted]
    missing = sorted(wanted - {printable(one.name) for one in entries})
    if missing:
        raise InvalidInputError(
            f"{len(missing)} test images are not there any more: {', '.join(missing[:_MOST_NAMED])}.",
            field="images",
        )
    for opened in images.read(entries):
        image = decode(opened, classifier.preprocessing, limits)
        name = printable(image.entry.name)
        if image.pixels is None:
            raise InvalidInputError(f"{name} cannot be read: {image.problem}", field="images")
        yield name, image.pixels


def _cost(
    store: Store, model: Model, classifier: OnnxClassifier, images: ImageSource, first: Sequence[str]
) -> RuntimeCost:
    """Size and time of a model, measured on the first test image."""
    _, pixels = next(_decoded(classifier, images, first))
    return measure_cost(
        store.artifacts.get(model.artifact or ""), classifier.logits, pixels[np.newaxis], clock=perf_counter
    )
