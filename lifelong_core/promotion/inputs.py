"""Inputs of a promotion report: held-out cases, two models and populations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy import LabeledLogits, PostProcessingHead
from lifelong_core.promotion.document import RuntimeCost
from lifelong_core.values.arrays import Floats, Logits, as_logits
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutCases:
    """Labelled cases that neither model was trained or calibrated on."""

    labels: NDArray[np.int64]
    """shape (N,), true classes 0..C-1"""
    groups: NDArray[np.generic] | None = None
    """shape (N,), which cases belong together"""
    names: Sequence[str] | None = None
    """N names, such as files"""
    metadata: Mapping[str, ArrayLike] = field(default_factory=dict[str, ArrayLike])
    """by attribute, shape (N,): the subgroups"""
    origin: str = ""
    """origin of the cases, in words"""


@dataclass(frozen=True, kw_only=True)
class SeenCases:
    """Held-out cases that a model was trained or calibrated on, all the same."""

    count: int
    """at least 1"""
    is_certain: bool
    """False: it is only known that they are not of its own test split"""


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedModel:
    """One of the two models."""

    reference: str
    """name@version"""
    logits: Logits
    """shape (N, C), of the held-out cases"""
    head: PostProcessingHead
    """its default head, which decides"""
    calibration: LabeledLogits | None = None
    """its calibration set, on which cut-offs are chosen; None: on half of the cases, for both models"""
    cost: RuntimeCost | None = None
    """None: not measured"""
    trained_on: str | None = None
    """digest or name of its training data; None: not known"""
    seen: SeenCases | None = None
    """None: none of the cases, as far as is known"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """An environment with a class prevalence that the monitor has estimated."""

    environment: str
    prevalence: Floats
    """shape (C,)"""
    new_head: PostProcessingHead
    """head that would decide there"""
    current_head: PostProcessingHead
    """head that decides there now"""


def check_compared(cases: HeldOutCases, *models: ComparedModel) -> None:
    """Make sure that all arrays have a row for each case.

    Raises:
        InvalidInputError: one has not; the field names it.
    """
    size = len(cases.labels)
    if cases.names is not None and len(cases.names) != size:
        raise InvalidInputError(f"expected {size} names, got {len(cases.names)}.", field="names")
    for model in models:
        rows = as_logits(model.logits).shape[0]
        if rows != size:
            raise InvalidInputError(
                f"there are logits of {rows} cases of {model.reference}, and labels of {size}.",
                field="logits",
            )
