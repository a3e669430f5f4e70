"""The methods of Dice by name, the assumption of each, and the parameters that match the calibration cases."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lifelong_core.deploy.performance.segmentation.curves import (
    Curves,
    OffsetCurves,
    TemperatureCurves,
    ThresholdCurves,
)
from lifelong_core.deploy.performance.segmentation.sums import CaseSums
from lifelong_core.values.arrays import Floats

_SAME = " on the maps as on the calibration cases."
SWEEPS = 20
"""Most rounds over the foreground classes, whose parameters depend on each other."""
SETTLED = 1e-6


@dataclass(frozen=True)
class DiceMethod:
    """How a method changes probabilities, and what it matches on the calibration cases."""

    curves: Literal["none", "temperature", "offset", "threshold"]
    """how probabilities are changed"""
    assumption: str
    class_specific: bool = False
    """one parameter for each predicted class: the background's by accuracy, those of the others by Dice"""
    is_scaled: bool = False
    """thresholds apply to probabilities that the temperatures of TS or CS-TS have scaled"""

    @property
    def has_thresholds(self) -> bool:
        """Whether pixels are counted above thresholds."""
        return self.curves == "threshold"


@dataclass(frozen=True, eq=False)
class Matched:
    """Parameters of a method, fitted to calibration cases."""

    parameters: Floats
    """shape (C,), of the pixels predicted as each class, in the units of the curves"""
    offsets: Floats
    """shape (C,), added to the soft Dice of each class; 0 but for CS-DoC"""
    fallback_classes: tuple[int, ...] = ()
    """classes that are never predicted in the calibration cases: they have the parameter of all pixels"""


DICE_METHODS: dict[str, DiceMethod] = {
    "AC": DiceMethod(
        "none",
        "The probabilities of the model are right.",
    ),
    "TS": DiceMethod(
        "temperature",
        "One temperature calibrates the confidence of all pixels" + _SAME,
    ),
    "DoC": DiceMethod(
        "offset",
        "Confidence exceeds accuracy by the same number" + _SAME,
    ),
    "ATC": DiceMethod(
        "threshold",
        "Pixels above one threshold of confidence are right, others wrong," + _SAME,
    ),
    "TS-ATC": DiceMethod(
        "threshold",
        "Pixels above one threshold of scaled confidence are right, others wrong," + _SAME,
        is_scaled=True,
    ),
    "CS-TS": DiceMethod(
        "temperature",
        "One temperature for each predicted class gives the right Dice" + _SAME,
        class_specific=True,
    ),
    "CS-DoC": DiceMethod(
        "offset",
        "Soft Dice differs from Dice by the same number" + _SAME,
        class_specific=True,
    ),
    "CS-ATC": DiceMethod(
        "threshold",
        "One threshold for each predicted class gives the right Dice" + _SAME,
        class_specific=True,
    ),
    "CS-TS-ATC": DiceMethod(
        "threshold",
        "One threshold of scaled confidence for each class gives the right Dice" + _SAME,
        class_specific=True,
        is_scaled=True,
    ),
}
"""Methods of Li et al. 2022 by name."""


def curves_of(method: DiceMethod, sums: CaseSums) -> Curves:
    """The curves of a method: sums of the probabilities that it changes."""
    if method.curves == "temperature":
        return TemperatureCurves.of(sums)
    return ThresholdCurves.of(sums) if method.has_thresholds else OffsetCurves.of(sums)


def match(method: DiceMethod, curves: Curves, sums: CaseSums, weights: Floats, *, background: int) -> Matched:
    """Fit the parameters of a method to calibration cases, each with a weight; shape (Z,)."""
    classes = sums.classes
    if method.curves == "none":
        return Matched(np.zeros(classes), np.zeros(classes))
    if not method.class_specific:
        return Matched(np.full(classes, match_accuracy(curves, sums, weights)), np.zeros(classes))
    if method.curves == "offset":
        return match_offsets(curves, sums, weights)
    return match_classes(curves, sums, weights, background=background)


def scaling_temperatures(method: DiceMethod, sums: CaseSums, *, background: int) -> Floats:
    """Temperatures under which the pixels of each predicted class are counted, shape (C,); ones without scaling."""
    if not method.is_scaled:
        return np.ones(sums.classes)
    scaling = DICE_METHODS["CS-TS" if method.class_specific else "TS"]
    curves, weights = TemperatureCurves.of(sums), np.ones(len(sums.predicted))
    return np.exp(match(scaling, curves, sums, weights, background=background).parameters)


def match_accuracy(curves: Curves, sums: CaseSums, weights: Floats) -> float:
    """The parameter that matches the mean confidence of all pixels to their accuracy (eqs. 1, 3 and 5).

    Args:
        curves: of the calibration cases.
        sums: of the same cases, with labels.
        weights: shape (Z,), how often each case counts.
    """
    pooled = curves.pooled(weights)
    pixels = float(weights @ sums.predicted.sum(axis=1))
    accuracy = float(weights @ sums.correct.sum(axis=1)) / pixels
    classes = range(sums.classes)

    def excess(parameter: float) -> float:
        return float(sum(pooled.sums(k, k, parameter)[0] for k in classes)) / pixels - accuracy

    return pooled.closest(excess)


def match_classes(curves: Curves, sums: CaseSums, weights: Floats, *, background: int) -> Matched:
    """A parameter for each predicted class: first the background's, by accuracy, then the others', by Dice.

    The soft Dice of a foreground class depends on the parameters of all classes (its probability in pixels that are
    predicted as another class), so that the foreground classes are matched in turn until no parameter moves.

    Args:
        curves: of the calibration cases.
        sums: of the same cases, with labels.
        weights: shape (Z,), how often each case counts.
        background: the class that is matched by accuracy (eqs. 2 and 6).
    """
    classes = sums.classes
    parameters = np.full(classes, match_accuracy(curves, sums, weights))
    pixels = weights @ sums.predicted
    fallback = tuple(int(k) for k in np.flatnonzero(pixels == 0))
    if pixels[background]:
        pooled = curves.pooled(weights)
        accuracy = float(weights @ sums.correct[:, background]) / pixels[background]
        parameters[background] = pooled.closest(
            lambda parameter: (
                float(pooled.sums(background, background, parameter)[0]) / pixels[background] - accuracy
            )
        )
    foreground = [k for k in range(classes) if k != background and k not in fallback]
    for _ in range(SWEEPS if len(foreground) > 1 else 1):
        before = parameters.copy()
        for one in foreground:
            parameters[one] = _match_dice(curves, sums, weights, parameters, one)
        if np.abs(parameters - before).max() <= SETTLED:
            break
    return Matched(parameters, np.zeros(classes), fallback)


def match_offsets(curves: Curves, sums: CaseSums, weights: Floats) -> Matched:
    """CS-DoC: the probabilities as they are, and DSC - sDSC of the calibration cases as offset of each class.

    A class that is never predicted has no such offset; its pixels get the offset of eq. 3.
    """
    classes = sums.classes
    never = [int(k) for k in np.flatnonzero(weights @ sums.predicted == 0)]
    soft, real = soft_dice(curves, sums.predicted, np.zeros(classes)), sums.dice
    parameters, offsets = np.zeros(classes), np.zeros(classes)
    for k in range(classes):
        if k not in never:
            offsets[k] = weighted_mean(real[:, k] - np.nan_to_num(soft[:, k]), weights)
    if never:
        parameters[never] = match_accuracy(curves, sums, weights)
    return Matched(parameters, offsets, tuple(never))


def soft_dice(curves: Curves, predicted: Floats, parameters: Floats) -> Floats:
    """Soft Dice (eq. 7) of each case and class, shape (Z, C); nan in cases in which the class is not predicted."""
    classes = int(predicted.shape[1])
    found = np.empty(predicted.shape)
    for j in range(classes):
        columns = [curves.sums(k, j, parameters[k]) for k in range(classes)]
        with np.errstate(invalid="ignore", divide="ignore"):
            found[:, j] = 2 * columns[j] / (predicted[:, j] + sum(columns))
    return np.where(predicted > 0, found, np.nan)


def weighted_mean(values: Floats, weights: Floats) -> float:
    """Mean of the values that are not nan; nan without any weight."""
    defined = ~np.isnan(values)
    total = float(weights[defined].sum())
    return float(weights[defined] @ values[defined]) / total if total > 0 else float("nan")


def _match_dice(curves: Curves, sums: CaseSums, weights: Floats, parameters: Floats, one: int) -> float:
    """The parameter of a class at which its mean soft Dice is its mean Dice, over the cases in which Dice is defined.

    A case in which the class is not predicted has Dice 0 and soft Dice 0.
    """
    real = sums.dice[:, one]
    target = weighted_mean(real, weights)
    rows = sums.predicted[:, one] > 0
    shares = weights[rows] / weights[~np.isnan(real)].sum()
    predicted = sums.predicted[rows, one]
    others = sum(
        (curves.sums(k, one, parameters[k])[rows] for k in range(parameters.size) if k != one),
        start=np.zeros(rows.sum()),
    )

    def excess(parameter: float) -> float:
        mine = curves.sums(one, one, parameter)[rows]
        return float(shares @ (2 * mine / (predicted + mine + others))) - target

    return curves.closest(excess)
