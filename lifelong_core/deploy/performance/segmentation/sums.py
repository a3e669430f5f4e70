"""Sums over the pixels of each case: all that the methods need, whatever the number of pixels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.performance.segmentation.cases import SegmentationMap, checked_labels, log_ratios
from lifelong_core.values.arrays import Floats, Integers, Logits
from lifelong_core.values.errors import InvalidInputError

LARGEST_LOG_TEMPERATURE = float(np.log(16))
"""Temperatures lie in 1/16..16."""
NODES = 20
THRESHOLD_STEP = 0.01
HIGHEST_THRESHOLD = 20.0
THRESHOLDS_BELOW_HALF = 200
"""Thresholds are log odds, log p / (1 - p): from 0 up to 20 at steps of 0.01, divided by the temperature; below 0,
where predictions of three or more classes can be, at this many equal steps."""

Counts = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class CaseSums:
    """Sums over the pixels of Z cases, by predicted class (index k) and class (index j)."""

    groups: Integers
    """shape (Z,), number of the group of each case"""
    predicted: Floats
    """shape (Z, C), pixels predicted as k"""
    labelled: Floats
    """shape (Z, C), pixels of the true class j; nan without labels"""
    correct: Floats
    """shape (Z, C), pixels predicted as k whose true class is k; nan without labels"""
    probabilities: Floats
    """shape (Z, C, C), sum of the probability of j over the pixels predicted as k"""
    tempered: NDArray[np.float32] | None
    """shape (Z, C, C, NODES), the same at the temperatures of `node_logs`"""
    survivors: Counts | None
    """shape (Z, C, H + 1), pixels predicted as k, their probability of k above each of H thresholds; the last is 0"""
    thresholds_at: Floats | None
    """shape (C,) or longer, temperature of the pixels predicted as k at which survivors were counted"""
    others: Counts | None
    """shape (Z, C, C, H'), pixels predicted as k, their probability of j above thresholds below 1/2; 0 for j = k"""

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return int(self.predicted.shape[1])

    @property
    def dice(self) -> Floats:
        """Dice of each case and class, shape (Z, C); nan where the class is neither predicted nor there (0/0)."""
        with np.errstate(invalid="ignore"):
            return 2 * self.correct / (self.predicted + self.labelled)


def node_logs() -> Floats:
    """Logarithms of the temperatures at which sums are kept: Chebyshev points, shape (NODES,)."""
    angles = [(node + 0.5) * np.pi / NODES for node in range(NODES)]
    return np.array([LARGEST_LOG_TEMPERATURE * float(np.cos(angle)) for angle in angles], dtype=np.float64)


def below_half(classes: int) -> int:
    """Number of thresholds below 1/2."""
    return THRESHOLDS_BELOW_HALF if classes > 2 else 1


def threshold_log_odds(classes: int, temperature: float) -> Floats:
    """The thresholds, ascending, shape (H,); every predicted class exceeds the first one, its probability is >= 1/C."""
    below = np.linspace(_lowest(classes), 0.0, below_half(classes), endpoint=False)
    steps = np.arange(int(HIGHEST_THRESHOLD / THRESHOLD_STEP) + 1, dtype=np.float64)
    return np.concatenate([below, steps * (THRESHOLD_STEP / temperature)]).astype(np.float64)


def _lowest(classes: int) -> float:
    return -float(np.log(classes - 1)) - THRESHOLD_STEP


def sum_cases(
    cases: Iterable[SegmentationMap],
    *,
    labelled: bool,
    field: str,
    tempered: bool = False,
    thresholds_at: Floats | None = None,
) -> CaseSums:
    """Read all cases once.

    Args:
        cases: in any sizes; with the same number of classes.
        labelled: whether the labels are needed.
        field: name of the cases in errors.
        tempered: whether to sum probabilities at all temperatures.
        thresholds_at: shape (C,), count pixels above thresholds at these temperatures of the predicted classes.

    Raises:
        InvalidInputError: there is no case, the numbers of classes differ, labels are missing, or values are illegal.
    """
    found: list[_Sums] = []
    keys: list[str] = []
    for case in cases:
        if found and case.classes != found[0].classes:
            raise InvalidInputError(
                f"{case.name}: expected {found[0].classes} classes as in the cases before, got {case.classes}.",
                field=field,
                hint="All cases come from one model; their first axis is the class.",
            )
        sums = _Sums(case.classes, tempered=tempered, thresholds_at=thresholds_at)
        for block in case.blocks():
            labels = checked_labels(block, classes=case.classes, name=case.name) if labelled else None
            if labelled and labels is None:
                raise InvalidInputError(f"{case.name}: the labels are missing.", field="labels")
            sums.add(*log_ratios(block, is_logits=case.is_logits, name=case.name), labels)
        found.append(sums)
        keys.append(f"case {len(keys)}" if case.group is None else f"group {case.group}")
    if not found:
        raise InvalidInputError("there is no case.", field=field)
    return _stacked(found, np.unique(np.array(keys), return_inverse=True)[1].astype(np.int64))


class _Sums:
    """Sums of one case while its blocks are read."""

    def __init__(self, classes: int, *, tempered: bool, thresholds_at: Floats | None) -> None:
        self.classes = classes
        self.predicted = np.zeros(classes)
        self.labelled = np.full(classes, np.nan)
        self.correct = np.full(classes, np.nan)
        self.probabilities = np.zeros((classes, classes))
        self.tempered = np.zeros((classes, classes, NODES)) if tempered else None
        self.thresholds_at = thresholds_at
        self.own = np.zeros((classes, threshold_log_odds(classes, 1.0).size), np.int64)
        self.others = np.zeros((classes, classes, below_half(classes)), np.int64)

    def add(self, predicted: Integers, ratios: Logits, labels: Integers | None) -> None:
        """Add the pixels of a block: predicted classes (P,), `log_ratios` (C, P), labels (P,)."""
        self.predicted += np.bincount(predicted, minlength=self.classes)
        if labels is not None:
            self.labelled = np.nan_to_num(self.labelled) + np.bincount(labels, minlength=self.classes)
            hits = np.bincount(predicted[predicted == labels], minlength=self.classes)
            self.correct = np.nan_to_num(self.correct) + hits
        for one in np.flatnonzero(np.bincount(predicted, minlength=self.classes)):
            self._add_predicted(int(one), ratios[:, predicted == one])

    def _add_predicted(self, one: int, ratios: Logits) -> None:
        self.probabilities[one] += _probability_sums(ratios, 1.0)
        if self.tempered is not None:
            for node, log in enumerate(node_logs()):
                self.tempered[one, :, node] += _probability_sums(ratios, float(np.exp(log)))
        if self.thresholds_at is not None:
            temperature = float(self.thresholds_at[one])
            self._count(one, ratios / np.float32(temperature), temperature)

    def _count(self, one: int, ratios: Logits, temperature: float) -> None:
        """Count pixels by their log odds."""
        odds = np.exp(ratios)
        odds[one] = 0
        rest = odds.sum(axis=0)
        with np.errstate(divide="ignore"):
            log_odds = -np.log(rest)
        self.own[one] += self._histogram(log_odds, temperature, self.own.shape[1])
        for other in range(self.classes):
            if other != one:
                # Odds are relative to those of the predicted class, which are 1.
                mine = odds[other] / (1 + rest - odds[other])
                near = mine[mine > np.exp(_lowest(self.classes))]
                self.others[one, other] += self._histogram(np.log(near), temperature, self.others.shape[2])

    def _histogram(self, log_odds: Logits, temperature: float, bins: int) -> Integers:
        """Number of log odds from each threshold to the next one."""
        below = below_half(self.classes)
        lowest = _lowest(self.classes)
        places = np.where(
            log_odds < 0, below * (1 - log_odds / lowest), below + log_odds * (temperature / THRESHOLD_STEP)
        )
        return np.bincount(np.clip(places, 0, bins - 1).astype(np.int64), minlength=bins)


def _probability_sums(ratios: Logits, temperature: float) -> Floats:
    """Sum of each class's probability at a temperature, shape (C,)."""
    tempered = np.exp(ratios * np.float32(1 / temperature))
    tempered /= tempered.sum(axis=0)
    return tempered.sum(axis=1, dtype=np.float64)


def _stacked(sums: list[_Sums], groups: Integers) -> CaseSums:
    counts = sums[0].thresholds_at is not None
    return CaseSums(
        groups=groups,
        predicted=np.stack([one.predicted for one in sums]),
        labelled=np.stack([one.labelled for one in sums]),
        correct=np.stack([one.correct for one in sums]),
        probabilities=np.stack([one.probabilities for one in sums]),
        tempered=(
            None
            if sums[0].tempered is None
            else np.stack([np.asarray(one.tempered, dtype=np.float32) for one in sums])
        ),
        survivors=np.stack([_survivors(one.own, end=True) for one in sums]) if counts else None,
        thresholds_at=sums[0].thresholds_at,
        others=np.stack([_survivors(one.others, end=False) for one in sums]) if counts else None,
    )


def _survivors(histograms: NDArray[Any], *, end: bool) -> Counts:
    """Counts at or above each bin; with an end, a last 0 above all."""
    above = np.flip(np.flip(histograms, axis=-1).cumsum(axis=-1), axis=-1)
    widths = [(0, 0)] * (above.ndim - 1) + [(0, 1 if end else 0)]
    return np.pad(above, widths).astype(np.uint32)
