"""Answers of `/v1/predict` and `/v1/logits`, which serving processes write without these classes."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

PredictionId = Annotated[
    str, Field(description="UUID of the logged prediction.", json_schema_extra={"format": "uuid"})
]
RequestId = Annotated[str | None, Field(description="As the request gave it; null: it gave none.")]


class PredictAnswer(TypedDict):
    """The decision about one image. Probabilities are keyed by class, expected costs by decision."""

    prediction_id: PredictionId
    request_id: RequestId
    task: str
    model: str
    model_version: int
    environment: str
    head_version: int
    decision: Annotated[
        int,
        Field(
            description="Index of the decision by the head's decision rule: a class, or one more to abstain."
        ),
    ]
    label: Annotated[str, Field(description="Name of the decision.")]
    probabilities: dict[str, float]
    expected_costs: dict[str, float]


class RowDecision(TypedDict):
    """The decision about one row of logits; columns are named by `classes` and `decisions` of the answer."""

    prediction_id: PredictionId
    decision: int
    label: str
    probabilities: list[float]
    expected_costs: list[float]


class LogitsAnswer(TypedDict):
    """The decisions about all rows, in their order."""

    task: str
    model: str
    model_version: int
    environment: str
    head_version: int
    request_id: RequestId
    classes: Annotated[list[str], Field(description="Names of the columns of `probabilities`.")]
    decisions: Annotated[list[str], Field(description="Names of the columns of `expected_costs`.")]
    predictions: list[RowDecision]
