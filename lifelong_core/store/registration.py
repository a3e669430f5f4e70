"""From a calibration set to a model that serves: set, first head and promotion in one transaction."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy import LabeledLogits, fit_head
from lifelong_core.errors import ConflictError, UnidentifiableError
from lifelong_core.store.calibration_sets import check_classes, insert_calibration_set
from lifelong_core.store.heads import publish_head
from lifelong_core.store.models import model_referenced, promote_model
from lifelong_core.store.records import HeadRecord
from lifelong_core.store.registry import changing_registry
from lifelong_core.store.store import Store
from lifelong_core.store.tasks import task_with_id


def register_calibration(
    store: Store,
    reference: str,
    labelled: LabeledLogits,
    *,
    actor: str,
    target_prevalence: ArrayLike | None = None,
) -> HeadRecord:
    """Give a model its calibration set and the default head fitted on it, and let the task serve it if it serves none.

    Args:
        store: where.
        reference: the model.
        labelled: labelled logits of exactly this model, held back at its development.
        actor: who does it.
        target_prevalence: shape (C,), for which the head is made; None: that of the calibration set.

    Returns:
        The model's new default head.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: logits or prevalence do not fit the task.
        UnidentifiableError: a class has no sample.
        ConflictError: the costs of the task changed meanwhile.
    """
    with store.database.read() as connection:
        model = model_referenced(connection, reference)
        task = task_with_id(connection, model.task_id)
    check_classes(labelled, task)
    if not labelled.counts.all():
        missing = [name for name, count in zip(task.class_names, labelled.counts, strict=True) if count == 0]
        raise UnidentifiableError(
            f"there is no calibration case of {', '.join(missing)}.",
            field="labels",
            mend="Add labelled cases of every class, 50 or more of each.",
        )
    # Fitted before the transaction: nobody waits for it. Of what is used here, only the costs can change meanwhile.
    head = fit_head(
        labelled,
        task.costs,
        target_prevalence=target_prevalence,
        class_names=task.class_names,
        provenance={"origin": "calibration", "model": model.reference},
    )
    digest = store.artifacts.put(labelled.to_bytes())
    with changing_registry(store.database) as connection:
        present = task_with_id(connection, task.id)
        if not np.array_equal(present.costs, task.costs):
            raise ConflictError(
                f"the costs of {task.name} changed while the head was fitted.",
                field="costs",
                mend="Try again.",
            )
        insert_calibration_set(connection, model, labelled, digest, actor=actor)
        record = publish_head(connection, model, head, environment=None, actor=actor, reason="publish")
        if present.promoted_model_id is None:
            promote_model(connection, model, actor=actor)
    return record
