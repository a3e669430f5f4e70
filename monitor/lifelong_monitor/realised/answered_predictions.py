"""The probabilities of labelled predictions, as they were answered.

The log holds the logits but not the probabilities; the head that answered never changes, so it gives them again.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store.heads.damaged_heads import DamagedHeadError
from lifelong_core.values.arrays import Floats, Integers, Logits, Mask
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.exporter.status import LeftOutPredictions

HeadOf: TypeAlias = Callable[[int], PostProcessingHead]
"""The head of a version; raises NotFoundError or DamagedHeadError."""

_NO_PROBABILITIES = "have no probabilities for the metrics that judge these"


@dataclass(frozen=True, eq=False)
class AnsweredPredictions:
    """Probabilities that clients received, as far as they can be computed again."""

    is_known: Mask
    """shape (N,), of the predictions"""
    probabilities: Floats
    """shape (K, C), of the K that are known, calibrated for what the head assumed that answered"""
    unscored: tuple[LeftOutPredictions, ...]
    """the others"""


def compute_answers(
    logits: Logits, head_versions: Integers, head_of: HeadOf, *, classes: int
) -> AnsweredPredictions:
    """Compute the probabilities that each head answered.

    Args:
        logits: shape (N, C), as they were logged.
        head_versions: shape (N,), of the heads that answered.
        head_of: gives the heads.
        classes: number of classes C of the task.
    """
    is_known: Mask = np.asarray(np.isfinite(logits).all(axis=1))
    left_out = Counter({f"{_NO_PROBABILITIES}: their logits are not finite": int((~is_known).sum())})
    probabilities = np.empty((len(logits), classes))
    for version in np.unique(head_versions[is_known]).tolist():
        rows = np.flatnonzero(is_known & (head_versions == version))
        found = _head(head_of, version, classes)
        if isinstance(found, PostProcessingHead):
            probabilities[rows] = found.apply(logits[rows]).probabilities
        else:
            is_known[rows] = False
            left_out[f"{_NO_PROBABILITIES}: {found}"] += rows.size
    return AnsweredPredictions(
        is_known=is_known,
        probabilities=probabilities[is_known],
        unscored=tuple(
            LeftOutPredictions(samples, reason) for reason, samples in left_out.items() if samples
        ),
    )


def _head(head_of: HeadOf, version: int, classes: int) -> PostProcessingHead | str:
    """Return the head, or why it cannot be used."""
    try:
        head = head_of(version)
    except (NotFoundError, DamagedHeadError) as error:
        return str(error)
    return head if head.classes == classes else f"head {version} is for {head.classes} classes, not {classes}"
