"""The methods by name, and what each assumes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lifelong_core.deploy.performance.segmentation.curves import (
    Curves,
    OffsetCurves,
    TemperatureCurves,
    ThresholdCurves,
)
from lifelong_core.deploy.performance.segmentation.matching import (
    Matched,
    match_accuracy,
    match_classes,
    match_offsets,
)
from lifelong_core.deploy.performance.segmentation.sums import CaseSums
from lifelong_core.values.arrays import Floats


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


_SAME = " on the maps as on the calibration cases."

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
