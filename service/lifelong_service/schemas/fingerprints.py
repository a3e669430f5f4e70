"""Answers about fingerprints of tasks."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict


class FingerprintAnswer(TypedDict):
    """A fingerprint of a task."""

    digest: str
    kind: str
    extractor: Annotated[str | None, Field(description="Digest of the extractor's reference.")]
    bins: int | None
    samples: Annotated[int | None, Field(description="Number of images that it was made of.")]
    created_at: str
    created_by: str


class FingerprintList(TypedDict):
    """The fingerprints of a task."""

    task: str
    fingerprints: list[FingerprintAnswer]
