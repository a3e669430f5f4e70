"""The gate of promotion: a model has to reach the acceptance thresholds of its task first.

A model counts as accepted if its newest evaluation under the task's present recommendation, with the default head that
the model has now, reaches all thresholds. A new recommendation or a new default head needs a new evaluation.

The first model of a task takes over with its calibration, as nothing else could answer; this gate is for every later
change of the served model, and for the first one too where a person promotes it.
"""

import json
from collections.abc import Iterator
from typing import Any

from lifelong_core.entities.develop.evaluations import Evaluation
from lifelong_core.entities.registry import Model
from lifelong_core.store.registry.models import model_referenced
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.store import Store
from lifelong_core.values.errors import ConflictError, LifelongError
from lifelong_core.values.names import check_reason

_FORCE = "To promote it all the same, give the reason as `force_reason` (`--force-because`)."


class NotAcceptedError(ConflictError):
    """The model has not reached the acceptance thresholds of its task.

    `details` holds the model, the version of the recommendation, the evaluation (None: there is none) and the outcomes
    of the thresholds, as in a validation result.
    """

    code = "not_accepted"

    def __init__(self, message: str, *, hint: str, details: dict[str, Any]) -> None:
        super().__init__(message, field="model", hint=f"{hint} {_FORCE}")
        self.details = details


def check_accepted(store: Store, reference: str, force_reason: str | None = None) -> str | None:
    """Make sure that a model reaches the acceptance thresholds of its task.

    Args:
        store: the store of the model.
        reference: the model.
        force_reason: reason for letting it answer all the same.

    Returns:
        What the reason overrides, for the audit log; None: nothing stands against the model.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: the reason is empty.
        NotAcceptedError: it misses a threshold, or was not validated yet, and there is no reason.
    """
    if force_reason is not None:
        check_reason(force_reason, field="force_reason", hint="Say in a few words why the model is promoted.")
    with store.database.read() as connection:
        model = model_referenced(connection, reference)
        task = task_with_id(connection, model.task_id)
    attached = store.recommendations.current(task.name)
    if task.promoted_model_id == model.id or attached is None or not attached.thresholds:
        return None
    head = _default_head(store, model)
    found = store.evaluations.newest(model.reference, recommendation_version=attached.version, head=head)
    if found is not None and found.accepted:
        return None
    error = _refusal(store, model, attached.version, found)
    if force_reason is None:
        raise error
    return error.message


def _default_head(store: Store, model: Model) -> str | None:
    """Digest of the default head; None: the model has none, or it cannot be read."""
    record = store.registry().heads.get((model.id, None))
    return None if record is None else record.head.digest


def _refusal(store: Store, model: Model, version: int, evaluation: Evaluation | None) -> NotAcceptedError:
    details: dict[str, Any] = {
        "model": model.reference,
        "recommendation_version": version,
        "evaluation": None,
        "outcomes": [],
    }
    if evaluation is None:
        return NotAcceptedError(
            _why_not_validated(store, model, version),
            hint=f"Validate it on labelled cases: `lifelong models validate {model.reference} --data FILE`.",
            details=details,
        )
    outcomes = _outcomes(store, evaluation)
    details["evaluation"] = {
        "id": str(evaluation.id),
        "samples": evaluation.samples,
        "accepted": evaluation.accepted,
        "created_at": evaluation.created_at.isoformat(),
    }
    details["outcomes"] = outcomes
    verdict = "misses the acceptance thresholds" if evaluation.accepted is False else "is not accepted"
    missed = "; ".join(_missed(outcomes))
    return NotAcceptedError(
        f"{model.reference} {verdict} of its task on {evaluation.samples} cases{': ' if missed else ''}{missed}.",
        hint="Train or calibrate a better one, or state other thresholds in a new recommendation.",
        details=details,
    )


def _why_not_validated(store: Store, model: Model, version: int) -> str:
    """The message on a model without an evaluation that counts."""
    newest = store.evaluations.newest(model.reference)
    if newest is None:
        return f"{model.reference} was never validated, and its task has acceptance thresholds."
    if newest.recommendation_version != version:
        return f"{model.reference} was not validated by the present recommendation of its task, version {version}."
    return f"{model.reference} was not validated with its present default head."


def _outcomes(store: Store, evaluation: Evaluation) -> list[dict[str, Any]]:
    """The outcomes of the thresholds; empty if the stored result cannot be read."""
    try:
        return json.loads(store.artifacts.get(evaluation.result))["acceptance"]
    except (LifelongError, ValueError, LookupError, TypeError):  # the refusal stands without them
        return []


def _missed(outcomes: list[dict[str, Any]]) -> Iterator[str]:
    """Metric and reason of each threshold that is not reached."""
    for outcome in outcomes:
        if outcome.get("passed") is not True:
            threshold = outcome.get("threshold", {})
            of = threshold.get("class_index")
            label = f"{threshold.get('metric')}" + ("" if of is None else f" of class {of}")
            why = str(outcome.get("why", "")).rstrip(".")
            yield f"{label}: {why[:1].lower()}{why[1:]}"
