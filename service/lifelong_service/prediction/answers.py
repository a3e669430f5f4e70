"""JSON answers to predictions, built from logged values, so that a repetition gets the same bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_core import to_json

from lifelong_core.deploy.head import HeadOutput
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.log.records import Prediction


@dataclass(frozen=True)
class DecidedRequest:
    """The predictions of one request and the output of their head (row i belongs to prediction i)."""

    task: Task
    model: Model
    head: HeadRecord
    environment: str
    request_id: str | None
    predictions: Sequence[Prediction]
    output: HeadOutput


def image_answer(decided: DecidedRequest) -> bytes:
    """Return the answer of /v1/predict: one decision, with names as keys."""
    names = decided.head.head.decision_names
    prediction = decided.predictions[0]
    body = {
        "prediction_id": prediction.id,
        "request_id": decided.request_id,
        **_provenance(decided),
        "decision": prediction.decision,
        "label": names[prediction.decision],
        "probabilities": dict(
            zip(decided.task.class_names, decided.output.probabilities[0].tolist(), strict=True)
        ),
        "expected_costs": dict(zip(names, decided.output.expected_costs[0].tolist(), strict=True)),
    }
    return to_json(body)


def logits_answer(decided: DecidedRequest) -> bytes:
    """Return the answer of /v1/logits: one decision per row, with the names of the columns once."""
    names = decided.head.head.decision_names
    probabilities = decided.output.probabilities.tolist()
    costs = decided.output.expected_costs.tolist()
    body = {
        **_provenance(decided),
        "request_id": decided.request_id,
        "classes": list(decided.task.class_names),
        "decisions": names,
        "predictions": [
            {
                "prediction_id": prediction.id,
                "decision": prediction.decision,
                "label": names[prediction.decision],
                "probabilities": probabilities[row],
                "expected_costs": costs[row],
            }
            for row, prediction in enumerate(decided.predictions)
        ],
    }
    return to_json(body)


def _provenance(decided: DecidedRequest) -> dict[str, str | int]:
    return {
        "task": decided.task.name,
        "model": decided.model.name,
        "model_version": decided.model.version,
        "environment": decided.environment,
        "head_version": decided.head.version,
    }
