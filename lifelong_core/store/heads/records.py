"""Calibration sets, published heads, activations and pins."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lifelong_core.arrays import Floats
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.values import ArrayValue


@dataclass(frozen=True, eq=False)
class CalibrationSet(ArrayValue):
    """Labelled logits of one model, immutable; the arrays are the artifact `digest`."""

    id: int
    model_id: int
    digest: str
    samples: int
    prevalence: Floats
    created_at: datetime


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
    """A head became the active one of (model, environment); environment None is the model's default head."""

    model_id: int
    environment: str | None
    sequence: int
    head_version: int
    activated_at: datetime
    activated_by: str
    reason: Literal["publish", "rollback", "swap"]
    uses_default_head: bool = False
    """True: a rollback took the environment back to the default head of its model, at the time `head_version`."""


@dataclass(frozen=True)
class HeadPin:
    """A person holds the head of (model, environment), or, with environment None, the model's default head."""

    model_id: int
    environment: str | None
    reason: str
    pinned_at: datetime
    pinned_by: str
