"""Registers a calibration set, its head and, for a task without one, the promoted model, in one transaction."""

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from lifelong_core.deploy import LabeledLogits, PostProcessingHead, fit_head
from lifelong_core.deploy.calibration_acceptance.findings import Finding
from lifelong_core.deploy.calibration_acceptance.report import (
    CalibrationReport,
    compare_with_promoted,
    examine_calibration,
)
from lifelong_core.deploy.criterion.expected_criterion import with_expectation
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.heads.calibration_sets import check_classes, insert_calibration_set
from lifelong_core.store.heads.checks import (
    check_first_set,
    check_set_of_model,
    follows_task,
)
from lifelong_core.store.heads.heads import publish_head
from lifelong_core.store.lifecycle.privacy import without_group_keys
from lifelong_core.store.registry.models import (
    check_graph_is_stored,
    model_referenced,
    model_with_id,
    promote_model,
)
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.store import Store
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError, UnidentifiableError
from lifelong_core.values.mistaken_probabilities import expect_logits
from lifelong_core.values.names import check_reason
from lifelong_core.values.preprocessing import Preprocessing

_FORCE = "If the set is right all the same, give the reason as `force_reason` (`--force-because`)."


class RefusedCalibrationError(InvalidInputError):
    """The report on the calibration set refuses its head.

    `details` holds the report as a JSON document, with `old_head_version`, the version of the compared head.
    """

    code = "calibration_refused"

    def __init__(self, report: CalibrationReport, old_version: int | None = None) -> None:
        refusals = report.refusals
        hints = dict.fromkeys(finding.hint for finding in refusals if finding.hint)
        super().__init__(
            "; ".join(finding.text.rstrip(".") for finding in refusals) + ".",
            field="labels" if any(finding.code != "sigmoid_outputs" for finding in refusals) else "logits",
            hint=" ".join([*hints, _FORCE]),
        )
        self.report = report
        self.details = {**report.to_document(), "old_head_version": old_version}


@dataclass(frozen=True, eq=False)
class CalibrationCandidate:
    """An examined calibration set of a model, not stored yet."""

    model: Model
    task: Task
    labelled: LabeledLogits
    head: PostProcessingHead
    old_version: int | None
    """version of the model's default head, which the new head is compared with; None: it has none"""
    report: CalibrationReport

    @property
    def takes_over(self) -> bool:
        """Whether publishing promotes the model, because its task has no promoted one."""
        return self.task.promoted_model_id is None


def register_calibration(
    store: Store,
    reference: str,
    labelled: LabeledLogits,
    *,
    actor: str,
    target_prevalence: ArrayLike | None = None,
    force_reason: str | None = None,
) -> HeadRecord:
    """Store a model's calibration set and the default head fitted on it; promote the model if its task has none.

    It calls `examine_candidate` and `publish_candidate`.

    Args:
        store: the store of the model.
        reference: the model.
        labelled: labelled logits of exactly this model, not used in its development.
        actor: name for the audit log.
        target_prevalence: shape (C,), assumed by the head; None: that of the calibration set.
        force_reason: reason for accepting a set that its report refuses; None: a refused set is an error.

    Returns:
        The model's new default head.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: logits or prevalence do not fit the task, or the reason is empty.
        OtherPreprocessingError: the logits were made with another preprocessing than this installation uses for the
            model.
        UnidentifiableError: a class has no sample.
        RefusedCalibrationError: the report refuses the set, and there is no reason.
        ConflictError: costs or decision rule of the task, or the model's calibration set, changed during the call.
    """
    candidate = examine_candidate(store, reference, labelled, target_prevalence=target_prevalence)
    return publish_candidate(store, candidate, actor=actor, force_reason=force_reason)


def examine_candidate(
    store: Store, reference: str, labelled: LabeledLogits, *, target_prevalence: ArrayLike | None = None
) -> CalibrationCandidate:
    """Fit and judge the head of a calibration set against the model's present head and set; nothing is stored.

    The candidate holds the set without its group keys.

    Args:
        store: the store of the model.
        reference: the model.
        labelled: labelled logits of exactly this model.
        target_prevalence: shape (C,), assumed by the head; None: that of the calibration set.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: logits or prevalence do not fit the task, or the logits are probabilities.
        OtherPreprocessingError: they were made with another preprocessing than this installation uses for the model.
        UnidentifiableError: a class has no sample.
    """
    with store.database.read() as connection:
        model = model_referenced(connection, reference)
        task = task_with_id(connection, model.task_id)
    check_set_of_model(labelled.preprocessing_digest, model)
    labelled = without_group_keys(labelled)
    _check_labelled(labelled, task)
    head = fit_head(
        labelled,
        task.costs,
        target_prevalence=target_prevalence,
        class_names=task.class_names,
        provenance={"origin": "calibration", "model": model.reference},
        decision_rule=task.decision_rule,
    )
    old = store.registry().heads.get((model.id, None))
    report = examine_calibration(
        labelled,
        task.costs,
        task.class_names,
        decision_rule=task.decision_rule,
        old_head=old.head if old is not None else None,
        previous=_baseline(store, model),
    )
    report = replace(
        report, findings=report.findings + compare_with_promoted_model(store, task, labelled, model)
    )
    head = with_expectation(head, labelled)
    return CalibrationCandidate(model, task, labelled, head, old.version if old is not None else None, report)


def examine_first(
    store: Store, labelled: LabeledLogits, task: Task, preprocessing: Preprocessing | None
) -> CalibrationReport:
    """Judge the calibration set of a model that is not registered yet.

    Args:
        store: the store of the task.
        labelled: the calibration set.
        task: of the model.
        preprocessing: of the model; None: it is external.

    Raises:
        InvalidInputError: the logits do not fit the task, or are probabilities.
        OtherPreprocessingError: they were made with another preprocessing than this installation uses for the model.
        UnidentifiableError: a class has no sample.
    """
    check_first_set(labelled.preprocessing_digest, preprocessing)
    _check_labelled(labelled, task)
    report = examine_calibration(labelled, task.costs, task.class_names, decision_rule=task.decision_rule)
    return replace(report, findings=report.findings + compare_with_promoted_model(store, task, labelled))


def compare_with_promoted_model(
    store: Store, task: Task, labelled: LabeledLogits, model: Model | None = None
) -> tuple[Finding, ...]:
    """Finding of the comparison with the promoted model of the task; empty for that model itself."""
    if task.promoted_model_id is None or (model is not None and task.promoted_model_id == model.id):
        return ()
    with store.database.read() as connection:
        promoted = model_with_id(connection, task.promoted_model_id)
    beside = active_set(store, promoted)
    if beside is None:
        return ()
    name = "this model" if model is None else model.reference
    return compare_with_promoted(labelled, beside, task.costs, (name, promoted.reference))


def _baseline(store: Store, model: Model) -> LabeledLogits | None:
    """The reference set for a new one: the active one or, if that was forced, the newest unforced one."""
    added = store.audit.list(action="calibration_sets.add", subject=model.reference, limit=100)
    forced: dict[int, bool] = {}
    for entry in added:  # newest first: the last entry of a set counts
        if entry.subject != model.reference:  # name@10 contains name@1
            continue
        forced.setdefault(entry.details["id"], "force_reason" in entry.details)
    if not forced.get(model.calibration_set_id or 0, False):
        return active_set(store, model)
    accepted = next((set_id for set_id, was_forced in forced.items() if not was_forced), None)
    return active_set(store, model if accepted is None else replace(model, calibration_set_id=accepted))


def active_set(store: Store, model: Model) -> LabeledLogits | None:
    """The active calibration set of a model; None: it has none, or its artifact is missing."""
    if model.calibration_set_id is None:
        return None
    try:
        return store.calibration_sets.load(model.calibration_set_id)
    except NotFoundError:  # only a new set helps, so its registration must not fail here
        return None


def _check_labelled(labelled: LabeledLogits, task: Task) -> None:
    """Make sure that a calibration set fits the task.

    Raises:
        InvalidInputError: it has another number of columns, or holds probabilities.
        UnidentifiableError: a class has no sample.
    """
    check_classes(labelled, task)
    expect_logits(labelled.logits)
    if not labelled.counts.all():
        missing = [name for name, count in zip(task.class_names, labelled.counts, strict=True) if count == 0]
        raise UnidentifiableError(
            f"there is no calibration case of {', '.join(missing)}.",
            field="labels",
            hint="Add labelled cases of every class, 50 or more of each.",
        )


def check_publishable(store: Store, candidate: CalibrationCandidate, *, force_reason: str | None) -> None:
    """Make sure that a candidate may be published: the first step of `publish_candidate`, the last of a dry run.

    Args:
        store: the store of the model.
        candidate: from `examine_candidate`.
        force_reason: reason for accepting a set that its report refuses.

    Raises:
        InvalidInputError: the reason is empty.
        RefusedCalibrationError: the report refuses the set, and there is no reason.
        ConflictError: the task has no promoted model, and the stored graph of this one is missing or damaged.
    """
    if force_reason is not None:
        hint = "Say in a few words why the set is right all the same."
        check_reason(force_reason, field="force_reason", hint=hint)
    if candidate.report.refusals and force_reason is None:
        raise RefusedCalibrationError(candidate.report, candidate.old_version)
    if candidate.takes_over:
        check_graph_is_stored(store.artifacts, candidate.model)


def publish_candidate(
    store: Store, candidate: CalibrationCandidate, *, actor: str, force_reason: str | None = None
) -> HeadRecord:
    """Store an examined calibration set with its head, in one transaction; the audit log keeps the report.

    Args:
        store: the store of the model.
        candidate: from `examine_candidate`.
        actor: name for the audit log.
        force_reason: reason for accepting a set that its report refuses.

    Returns:
        The model's new default head.

    Raises:
        InvalidInputError: the reason is empty.
        RefusedCalibrationError: the report refuses the set, and there is no reason.
        ConflictError: costs or decision rule of the task, or the model's calibration set, changed since it was
            examined; or the task has no promoted model and the stored graph of this one is missing or damaged.
    """
    check_publishable(store, candidate, force_reason=force_reason)
    model, task, labelled = candidate.model, candidate.task, candidate.labelled
    digest = store.artifacts.put(labelled.to_bytes())
    details: dict[str, Any] = {"report": candidate.report.to_document()}
    if candidate.report.refusals:
        details["force_reason"] = force_reason
    with change_registry(store.database) as connection:
        present = task_with_id(connection, task.id)
        if not follows_task(candidate.head, present):
            raise ConflictError(
                f"the costs or the decision rule of {task.name} changed while the head was fitted.",
                field="costs",
                hint="Try again.",
            )
        if model_with_id(connection, model.id).calibration_set_id != model.calibration_set_id:
            raise ConflictError(
                f"{model.reference} was given another calibration set while this one was examined.",
                field="calibration_set",
                hint="Try again: the report will compare this set with that one.",
            )
        insert_calibration_set(connection, model, labelled, digest, actor=actor, details=details)
        record = publish_head(
            connection, model, candidate.head, environment=None, actor=actor, reason="publish"
        )
        if present.promoted_model_id is None:
            promote_model(connection, model, actor=actor, reason="first")
    return record
