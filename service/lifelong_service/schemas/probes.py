"""Answer of /readyz."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict


class SpoolAnswer(TypedDict):
    """Predictions that wait on the local disk for the database; sizes in bytes."""

    bytes: int
    maximum_bytes: int
    predictions: int
    oldest: str | None
    damaged_records: int
    refused_records: int


class Readiness(TypedDict):
    """Whether this worker answers predictions, and its faults."""

    ready: bool
    reasons: Annotated[list[str], Field(description="Why it is not ready.")]
    degraded: Annotated[list[str], Field(description="Faults that do not stop predictions.")]
    spool: SpoolAnswer | None
    revision: Annotated[int | None, Field(description="Of the registry that this worker has taken over.")]
    damaged_heads: list[str]
    failed_models: Annotated[dict[str, str], Field(description="Model -> why it cannot be loaded.")]
    execution_providers: Annotated[
        dict[str, str], Field(description="Loaded model -> the ONNX Runtime execution provider that runs it.")
    ]
