"""The kind `validate`: is a model good enough, on labelled samples, by the metrics that its task recommends?"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy import LabeledLogits, PostProcessingHead
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.design import Recommendation
from lifelong_core.design.recommendation.stated_rule import recommended_rule
from lifelong_core.design.report.pages import validation_html
from lifelong_core.design.validation.result import Aggregation, ValidationResult
from lifelong_core.design.validation.uncertainty.document import UncertaintySettings
from lifelong_core.design.validation.validate import validate
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store import Job, Store
from lifelong_core.store.heads.calibration_sets import check_classes
from lifelong_core.values.arrays import Floats
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError

_SEEN = (
    "This is the calibration set on which the head of the model was fitted: the numbers are too good to hold for other"
    " cases."
)


class Payload(FrozenDocument):
    """The payload of the job."""

    task: str
    model: str = Field(description="Reference, name@version.")
    recommendation_version: int = Field(description="Of those that are attached to the task.")
    labelled_set: str = Field(description="Digest of the artifact: `LabelledSet.to_bytes`.")
    metadata: tuple[str, ...] | None = Field(
        default=None, description="Keys by which subgroups are reported; None: all that the set holds."
    )
    environment: str | None = Field(
        default=None, description="Whose head decides; None: the default head of the model."
    )
    replicates: Annotated[int, Field(ge=1)] = 1000
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    uncertainty: UncertaintySettings | None = Field(
        default=None, description="Of uncertainty-aware scores; None: the defaults."
    )
    aggregation: Aggregation = Field(
        default="pooled", description="`by_group`: metrics of each group, then their mean."
    )


def work(store: Store, job: Job) -> dict[str, Any]:
    """Validate the model as its head decides now; result and report become artifacts, and an evaluation of the model.

    On the calibration set itself, there is no evaluation: its numbers are no reason to promote the model.

    Raises:
        InvalidInputError: the payload, or what it names, does not fit.
        NotFoundError: what it names does not exist.
    """
    return evaluate(store, job, Payload.from_document(job.payload))


def evaluate(store: Store, job: Job, asked: Payload) -> dict[str, Any]:
    """Validate a model within a job of any kind; this replaces an earlier evaluation of the model by the same job."""
    model, task, head = _served(store, asked)
    data = LabelledSet.from_bytes(store.artifacts.get(asked.labelled_set))
    check_classes(data.labelled, task)
    result = _validated(store, asked, data, (model, task, head))
    document, page = result.to_json().encode(), validation_html(result).encode()
    if _SEEN not in result.warnings:
        store.evaluations.put(
            model.reference,
            result=document,
            report=page,
            labelled_set=data.to_bytes(),
            head=head.digest,
            recommendation_version=asked.recommendation_version,
            accepted=result.accepted,
            samples=result.samples,
            job_id=job.id,
            actor=job.created_by,
        )
    return {
        "result": store.artifacts.put(document),
        "report": store.artifacts.put(page),
        "accepted": result.accepted,
        "samples": result.samples,
    }


def _validated(
    store: Store, asked: Payload, data: LabelledSet, served: tuple[Model, Task, PostProcessingHead]
) -> ValidationResult:
    model, task, head = served
    attached = store.recommendations.get(task.name, asked.recommendation_version)
    output = head.apply(data.labelled.logits)
    calibration = None
    cut_off_data: tuple[NDArray[np.int64], Floats] | None = None
    if model.calibration_set_id is not None:
        calibration = store.calibration_sets.load(model.calibration_set_id)
        cut_off_data = (calibration.labels, head.apply(calibration.logits).probabilities)
    result = validate(
        attached.recommendation,
        data.labelled.labels,
        probabilities=output.probabilities,
        decisions=output.decisions,
        groups=data.labelled.groups,
        metadata=_metadata(data, asked.metadata),
        class_names=task.class_names,
        thresholds=attached.thresholds,
        cut_off_data=cut_off_data,
        score_prevalence=head.assumed_prevalence,
        uncertainties=data.uncertainties,
        members=_member_probabilities(data, head),
        uncertainty_settings=asked.uncertainty,
        name=model.reference,
        replicates=asked.replicates,
        level=asked.level,
        aggregation=asked.aggregation,
    )
    cautions = [*rule_cautions(attached.recommendation, head, task.class_names)]
    if calibration is not None and _are_same_cases(calibration, data.labelled):
        cautions.insert(0, _SEEN)
    return result.model_copy(update={"warnings": (*cautions, *result.warnings)})


def _member_probabilities(data: LabelledSet, head: PostProcessingHead) -> list[Floats] | None:
    """Probabilities of each member as the head makes them of its logits; None without members."""
    return None if data.members is None else [head.apply(one).probabilities for one in data.members]


def _served(store: Store, asked: Payload) -> tuple[Model, Task, PostProcessingHead]:
    """The model, its task, and the head that decides for it."""
    registry = store.registry()
    model = registry.resolve_model(asked.model)
    task = registry.tasks[model.task_id]
    if task.name != asked.task:
        raise InvalidInputError(
            f"{model.reference} is a model of {task.name}, not of {asked.task[:80]!r}.", field="model"
        )
    return model, task, registry.head_for(model, asked.environment).head


def _metadata(data: LabelledSet, keys: tuple[str, ...] | None) -> dict[str, NDArray[np.generic]] | None:
    """The arrays of these keys; None: there are none."""
    for key in keys or ():
        if key not in data.metadata:
            raise InvalidInputError(
                f"the labelled set has no {key[:80]!r}.",
                field="metadata",
                hint=f"It has: {', '.join(data.metadata) or 'none'}.",
            )
    return {key: data.metadata[key] for key in (data.metadata if keys is None else keys)} or None


def _are_same_cases(one: LabeledLogits, other: LabeledLogits) -> bool:
    """Whether logits and labels are equal; names of groups do not count."""
    return np.array_equal(one.logits, other.logits) and np.array_equal(one.labels, other.labels)


def rule_cautions(
    recommendation: Recommendation, head: PostProcessingHead, class_names: Sequence[str]
) -> Iterator[str]:
    """Yield a caution where the head decides by another rule than the recommendation asks for."""
    wanted = recommended_rule(recommendation).rule
    if wanted is not None and wanted != head.decision_rule:
        own, other = (describe_rule(rule, tuple(class_names)) for rule in (head.decision_rule, wanted))
        yield f"The head decides by another rule ({own}) than the recommendation asks for ({other}): refit it."
