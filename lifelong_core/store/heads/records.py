"""Calibration sets, published heads, activations and pins."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats

HeadPopulation: TypeAlias = tuple[int, str | None]
"""Model id and environment that a head serves; environment None: the model's default head."""


@dataclass(frozen=True, eq=False)
class CalibrationSet(ArrayValue):
    """Labelled logits of one model, immutable; the arrays are the artifact `digest`."""

    id: int
    model_id: int
    digest: str
    samples: int
    prevalence: Floats
    created_at: datetime
    preprocessing_digest: str | None = None
    """how the images were decoded and preprocessed; None: unknown"""


@dataclass(frozen=True)
class HeadRecord:
    """One published head. Versions count up per model, over all its environments."""

    model_id: int
    version: int
    head: PostProcessingHead
    created_at: datetime
    created_by: str


@dataclass(frozen=True)
class Activation:
    """Activation of a head for a population; environment None: the model's default head."""

    model_id: int
    environment: str | None
    sequence: int
    head_version: int
    activated_at: datetime
    activated_by: str
    reason: Literal["publish", "rollback", "swap"]
    uses_default_head: bool = False
    """True: a rollback returned the environment to its model's default head, `head_version` at that time."""


@dataclass(frozen=True)
class HeadPin:
    """A pin keeps cycles from replacing the head of a population; environment None: the model's default head."""

    model_id: int
    environment: str | None
    reason: str
    pinned_at: datetime
    pinned_by: str
