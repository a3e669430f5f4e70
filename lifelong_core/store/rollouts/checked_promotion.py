"""Promotes a model, unless something stands against it."""

from typing import Any

from lifelong_core.entities.registry import Model
from lifelong_core.store.evaluations.acceptance import check_accepted
from lifelong_core.store.evaluations.comparisons import advice_against
from lifelong_core.store.heads.checks import other_preprocessing
from lifelong_core.store.heads.registration import active_set, compare_with_promoted_model
from lifelong_core.store.registry.models import (
    check_graph_is_stored,
    check_has_head,
    model_referenced,
    model_with_id,
    promote_model,
)
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.rollouts.candidate_heads import fit_candidate_heads, publish_candidate_heads
from lifelong_core.store.store import Store
from lifelong_core.values.errors import ConflictError


class WorseModelError(ConflictError):
    """The model is significantly worse than the promoted one of its task; promotion needs a reason."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(
            text,
            field="model",
            hint=f"{hint} If it is right all the same, give the reason as `force_reason` (`--force-because`).",
        )


def promote_calibrated(store: Store, reference: str, *, actor: str, force_reason: str | None = None) -> Model:
    """Promote a model, unless it misses acceptance thresholds or is significantly worse than the promoted one.

    First, heads are fitted for the environments of known prevalence (see `rollouts.candidate_heads`).

    Args:
        store: the store of the model.
        reference: the model.
        actor: name for the audit log.
        force_reason: reason for promoting it all the same, for the audit log.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: the reason is empty.
        NotAcceptedError: it misses an acceptance threshold of its task, or was not validated with its present head by
            the task's present recommendation, and there is no reason.
        CalibratedOtherwiseError: its calibration set was made with another preprocessing than this installation uses,
            and there is no reason.
        WorseModelError: it is significantly worse on its calibration set than the promoted model on the latter's set,
            or its newest promotion report against that model advises against it, and there is no reason.
        ConflictError: it has no default head yet, its stored graph is missing or damaged, another model is on trial as
            a canary, or the heads of the task changed meanwhile.
        UnavailableError: the artifact storage cannot be read.
    """
    details = check_promotion(store, reference, force_reason=force_reason) or {}
    model = store.models.get(reference)
    check_graph_is_stored(store.artifacts, model)
    heads = fit_candidate_heads(store, model)
    with change_registry(store.database) as connection:
        model = model_with_id(connection, model.id)
        check_has_head(connection, model)
        if fitted := publish_candidate_heads(connection, heads, actor=actor):
            details["heads"] = fitted
        promote_model(connection, model, actor=actor, details=details or None)
    return model


def check_promotion(
    store: Store, reference: str, *, force_reason: str | None = None
) -> dict[str, Any] | None:
    """Make sure that nothing stands against letting a model answer requests, promoted or as a canary, or that there is
    a reason to do it all the same.

    Args:
        store: the store of the model.
        reference: the model.
        force_reason: reason for letting it answer all the same.

    Returns:
        Details for the audit log: the reason and what it overrides; None: nothing stands against the model.

    Raises:
        NotFoundError, InvalidInputError, NotAcceptedError, CalibratedOtherwiseError, WorseModelError: as for
            `promote_calibrated`.
    """
    not_accepted = check_accepted(store, reference, force_reason)
    with store.database.read() as connection:
        model = model_referenced(connection, reference)
        task = task_with_id(connection, model.task_id)
        other = other_preprocessing(connection, model)
        promoted = (
            None if task.promoted_model_id is None else model_with_id(connection, task.promoted_model_id)
        )
    if other is not None and force_reason is None:
        raise other
    labelled = active_set(store, model)
    worse = () if labelled is None else compare_with_promoted_model(store, task, labelled, model)
    if worse and force_reason is None:
        raise WorseModelError(worse[0].text, worse[0].hint or "")
    advice = None if promoted is None else advice_against(store, model, promoted)
    if advice is not None and force_reason is None:
        hint = f"Read it: GET /v1/admin/models/{model.reference}/reports."
        raise WorseModelError(advice, hint)
    preprocessing = None if other is None else other.message
    said = (not_accepted, preprocessing, *(one.text for one in worse), advice)
    findings = [finding for finding in said if finding is not None]
    return {"force_reason": force_reason, "finding": " ".join(findings)} if findings else None
