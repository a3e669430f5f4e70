"""From a recommendation to decisions: attached, and a head fitted for its costs put in force, in one transaction."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from lifelong_core.arrays import Floats
from lifelong_core.deploy import fit_head
from lifelong_core.errors import ConflictError
from lifelong_core.store.activations import serving_version
from lifelong_core.store.design_records import AttachedRecommendation
from lifelong_core.store.heads import publish_head
from lifelong_core.store.models import model_with_id
from lifelong_core.store.recommendations import attach_recommendation, fitting_costs
from lifelong_core.store.records import HeadRecord, Model, Task
from lifelong_core.store.registry import changing_registry
from lifelong_core.store.store import Store
from lifelong_core.store.tasks import task_named

if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold


def attach_and_refit(
    store: Store,
    task: str,
    recommendation: "Recommendation",
    *,
    thresholds: "Sequence[AcceptanceThreshold]" = (),
    expected_version: int | None = None,
    actor: str,
) -> tuple[AttachedRecommendation, Model, HeadRecord]:
    """`store.recommendations.attach`, and a new default head of the task's promoted model, or neither.

    The head is fitted on the active calibration set of the model, with the costs of the task as the recommendation
    leaves them. The class mix that it assumes is the one that the recommendation states for the use; where it states
    none, that of the default head in force. Environments that have a head of their own keep it.

    Returns:
        What is in force now: the recommendation, the model, and its new default head.

    Raises:
        NotFoundError: there is no such task.
        InvalidInputError: the recommendation does not fit the task.
        UnidentifiableError: a class that is to be expected has no calibration case.
        PayloadTooLargeError: the document is too large to be kept.
        ConflictError: the task has no promoted model, that has no calibration set, or any of this changed meanwhile;
            and as for `attach`.
    """
    with store.database.read() as connection:
        found = task_named(connection, task)
        model, set_id = _calibrated(connection, found)
    costs = fitting_costs(recommendation, found)
    # Fitted before the transaction: nobody waits for it.
    head = fit_head(
        store.calibration_sets.load(set_id),
        found.costs if costs is None else costs,
        target_prevalence=_prevalences(store, model, recommendation),
        class_names=found.class_names,
        provenance={"origin": "recommendation", "model": model.reference, "task": task},
    )
    with changing_registry(store.database) as connection:
        present = task_named(connection, task)
        if present != found or _calibrated(connection, present) != (model, set_id):
            raise ConflictError(
                f"the task {task} or its model changed while the head was fitted.",
                field="refit_head",
                mend="Look at them and try again.",
            )
        attached = attach_recommendation(
            connection,
            task,
            recommendation,
            thresholds=thresholds,
            expected_version=expected_version,
            actor=actor,
        )
        provenance = {**head.provenance, "recommendation": attached.version}
        record = publish_head(
            connection,
            model,
            replace(head, provenance=provenance),
            environment=None,
            actor=actor,
            reason="publish",
        )
    return attached, model, record


def _calibrated(connection: sa.Connection, task: Task) -> tuple[Model, int]:
    """The promoted model of a task and the calibration set that it is fitted on.

    Raises:
        ConflictError: there is none.
    """
    if task.promoted_model_id is None:
        raise ConflictError(
            f"the task {task.name} has no promoted model.",
            field="refit_head",
            mend="Promote one, or attach the recommendation without a new head.",
        )
    model = model_with_id(connection, task.promoted_model_id)
    if model.calibration_set_id is None:
        raise ConflictError(
            f"the model {model.reference} has no calibration set.",
            field="refit_head",
            mend="Give it one, or attach the recommendation without a new head.",
        )
    return model, model.calibration_set_id


def _prevalences(store: Store, model: Model, recommendation: "Recommendation") -> Floats | None:
    """The class mix to fit for; None: that of the calibration set."""
    stated = recommendation.fingerprint.target_prevalences
    unused = {answer.item for answer in recommendation.unused}
    if stated is not None and "target_prevalences" not in unused:
        return np.asarray(stated)
    with store.database.read() as connection:
        version = serving_version(connection, model.id, None)
    record = None if version is None else store.heads.get(model.reference, version)
    return None if record is None else record.head.assumed_prevalence
