"""The kind `compare`: the promotion report of a model, from labelled logits of it and of the current model."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.design.report.pages import validation_html
from lifelong_core.promotion import HeldOutCases, SeenCases
from lifelong_core.promotion.document import LocalizationComparison
from lifelong_core.promotion.report import seen_warning
from lifelong_core.store import Job, Model, Store
from lifelong_core.store.heads.calibration_sets import check_classes
from lifelong_core.values.arrays import Logits
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_monitor.jobs import model_facts
from lifelong_monitor.jobs.images import images_at
from lifelong_monitor.jobs.kept_test_set import seen_cases
from lifelong_monitor.jobs.localization import compare_places
from lifelong_monitor.jobs.promotion_reports import ModelCases, compare_registered, store_report


class Payload(FrozenDocument):
    """What is asked for."""

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
    found = compare_places(store, new, current, source, names=names)
    if found is None:
        raise InvalidInputError(
            "the places that both models look at cannot be compared: a model runs elsewhere, or no image that can be"
            f" read in {asked.images[:200]!r} has a class of the task and the name of a case.",
            field="images",
            hint="Leave images out, or give the folder in which the cases have the names of the labelled set.",
        )
    return found


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
