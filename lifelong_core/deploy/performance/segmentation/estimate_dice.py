"""The Dice of a segmentation model on unlabelled maps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from lifelong_core.deploy.checks import as_level, as_whole_number
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.deploy.performance.segmentation.cases import MOST_CLASSES, SegmentationMap
from lifelong_core.deploy.performance.segmentation.curves import Curves
from lifelong_core.deploy.performance.segmentation.methods import (
    DICE_METHODS,
    DiceMethod,
    Matched,
    curves_of,
    match,
    scaling_temperatures,
    soft_dice,
    weighted_mean,
)
from lifelong_core.deploy.performance.segmentation.result import (
    ClassDice,
    DiceEstimate,
    DiceMeans,
    bootstrap_values,
    dice_warnings,
    foreground_mean,
    interval,
    mean_over_maps,
)
from lifelong_core.deploy.performance.segmentation.sums import CaseSums, sum_cases
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

MOST_REPLICATES = 100_000

_COMMON_ASSUMPTIONS = (
    "Groups of cases are independent.",
    "Of the maps without a predicted pixel of a class, the same share contains it as of such calibration cases.",
)


def estimate_dice(
    calibration: Iterable[SegmentationMap],
    maps: Iterable[SegmentationMap],
    *,
    method: str = "CS-ATC",
    background: int = 0,
    confidence: float = 0.95,
    replicates: int = 200,
    rng: int | np.random.Generator = 0,
) -> DiceEstimate:
    """Estimate the mean Dice of each class over unlabelled maps (Li et al. 2022, eq. 7).

    The class-agnostic methods AC, TS, DoC and ATC calibrate the confidence of all pixels of the calibration cases
    (eqs. 1, 3 and 5). The class-specific ones calibrate pixels that are predicted as background by accuracy (eqs. 2 and
    6) and those of each other class by Dice.

    The interval is for the mean Dice in the population of the maps. It counts the variation between maps and, by the
    bootstrap, that of the parameters between calibration cases; temperatures under thresholds (TS-ATC, CS-TS-ATC) stay
    those of all calibration cases.

    Memory grows with the number of cases and the square of the number of classes, not with the number of pixels: about
    20 kB for a case of two classes. Thresholds are 0.01 log odds of the model apart; sums at a temperature are off by
    less than 1e-4 of the pixels.

    Args:
        calibration: labelled cases; they are read once, for TS-ATC and CS-TS-ATC twice.
        maps: unlabelled cases of the same model; they are read once.
        method: one of `DICE_METHODS`.
        background: class whose pixels are calibrated by accuracy, and that is not part of the foreground.
        confidence: nominal coverage of each interval, in (0, 1).
        replicates: drawn calibration sets, at least 2.
        rng: seed or generator of the draws.

    Raises:
        InvalidInputError: an argument or a case does not fit; the message names the case.

    Examples:
        >>> from lifelong_core.deploy.performance.segmentation.cases import SegmentationCase
        >>> draw = np.random.default_rng(0)
        >>> cases = []
        >>> for _ in range(20):
        ...     labels = np.zeros((16, 16), dtype=int)
        ...     labels[4:10, 4:10] = 1
        ...     logits = np.stack([np.zeros((16, 16)), 4 * labels - 2 + draw.normal(size=(16, 16))])
        ...     cases.append(SegmentationCase(logits, labels, is_logits=True))
        >>> found = estimate_dice(cases[:10], cases[10:], method="CS-TS")
        >>> def dice(case):
        ...     decided = case.scores[1] > case.scores[0]
        ...     return 2 * decided[case.labels == 1].sum() / (decided.sum() + case.labels.sum())
        >>> real = float(np.mean([dice(case) for case in cases[10:]]))
        >>> abs(found.classes[1].value - real) < 0.03, found.classes[1].low < real < found.classes[1].high
        (True, True)
    """
    chosen = _checked_method(method)
    as_level(confidence, "confidence")
    as_whole_number(replicates, 2, MOST_REPLICATES, field="replicates")
    sums, target = _read(chosen, calibration, maps, background=background)
    curves, seen = curves_of(chosen, sums), curves_of(chosen, target)

    def values_of(weights: Floats) -> Floats:
        matched = match(chosen, curves, sums, weights, background=background)
        soft = soft_dice(seen, target.predicted, matched.parameters)
        return mean_over_maps(soft, _missed(sums, weights), matched.offsets).values

    drawn = bootstrap_values(values_of, sums.groups, replicates=replicates, rng=rng)
    once = np.ones(len(sums.predicted))
    matched = match(chosen, curves, sums, once, background=background)
    means = mean_over_maps(
        soft_dice(seen, target.predicted, matched.parameters), _missed(sums, once), matched.offsets
    )

    fit = _Fit(chosen, curves, matched, background, confidence)
    classes = tuple(
        _class_dice(
            fit.bounded(float(means.values[k]), means.influences[:, k], drawn[:, k], sums, target),
            k,
            sums,
            target,
            fit.parameter(k),
        )
        for k in range(means.values.size)
    )
    return DiceEstimate(
        method=method,
        classes=classes,
        foreground=_foreground(fit, means, drawn, sums, target),
        background=background,
        confidence=confidence,
        cases=len(target.predicted),
        calibration_cases=len(sums.predicted),
        assumptions=(chosen.assumption, *_COMMON_ASSUMPTIONS),
        warnings=dice_warnings(
            classes,
            fallback=matched.fallback_classes,
            at_limit=fit.classes_at_limit(),
            background=background,
            calibration_groups=sums.groups,
            map_groups=target.groups,
        ),
    )


def _checked_method(name: str) -> DiceMethod:
    if name not in DICE_METHODS:
        raise InvalidInputError(
            f"there is no method {name[:80]!r}.", field="method", hint=f"They are {', '.join(DICE_METHODS)}."
        )
    return DICE_METHODS[name]


def _read(
    method: DiceMethod,
    calibration: Iterable[SegmentationMap],
    maps: Iterable[SegmentationMap],
    *,
    background: int,
) -> tuple[CaseSums, CaseSums]:
    """Sums of the calibration cases and of the maps, as far as the method needs them."""
    if method.is_scaled and isinstance(calibration, Iterator):
        raise InvalidInputError(
            "they are read twice, which an iterator does not allow.", field="calibration", hint="Give a list."
        )
    tempered = method.curves == "temperature"
    plain = np.ones(MOST_CLASSES)
    sums = sum_cases(
        calibration,
        labelled=True,
        field="calibration",
        tempered=tempered or method.is_scaled,
        thresholds_at=plain if method.has_thresholds and not method.is_scaled else None,
    )
    as_whole_number(background, 0, sums.classes - 1, field="background")
    scaling = scaling_temperatures(method, sums, background=background) if method.has_thresholds else None
    if method.is_scaled:
        sums = sum_cases(calibration, labelled=True, field="calibration", thresholds_at=scaling)
    target = sum_cases(maps, labelled=False, field="maps", tempered=tempered, thresholds_at=scaling)
    if target.classes != sums.classes:
        raise InvalidInputError(
            f"expected {sums.classes} classes as in the calibration cases, got {target.classes}.",
            field="maps",
            hint="Calibration cases and maps come from the same model.",
        )
    return sums, target


def _missed(sums: CaseSums, weights: Floats) -> Floats:
    """Share of the calibration cases without a predicted pixel of a class that contain it, (C,); 1 without any."""
    shares = [weighted_mean(share, weights) for share in _presence_where_unpredicted(sums).T]
    return np.nan_to_num(np.array(shares), nan=1.0)


def _presence_where_unpredicted(sums: CaseSums) -> Floats:
    """Whether each class is present where it is not predicted, shape (Z, C); nan where it is predicted."""
    return np.where(sums.predicted > 0, np.nan, (sums.labelled > 0).astype(np.float64))


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fitted method, and how its result is presented."""

    method: DiceMethod
    curves: Curves
    matched: Matched
    background: int
    confidence: float

    def parameter(self, k: int) -> float | None:
        """The parameter of a class, in the units of the paper."""
        if self.method.curves == "none":
            return None
        is_offset = self.method.curves == "offset" and self.method.class_specific
        if is_offset and k not in self.matched.fallback_classes:
            return float(self.matched.offsets[k])
        return self.curves.readable(k, float(self.matched.parameters[k]))

    def classes_at_limit(self) -> list[int]:
        """Classes whose own parameter is an end of its range."""
        if self.method.curves in ("none", "offset"):
            return []
        return [
            k
            for k, parameter in enumerate(self.matched.parameters)
            if k not in self.matched.fallback_classes and self.curves.at_limit(float(parameter))
        ]

    def bounded(
        self, value: float, influences: Floats, replicates: Floats, sums: CaseSums, target: CaseSums
    ) -> EstimatedMetric:
        """A value with its interval."""
        groups = int(sums.groups.max()) + 1
        return interval(value, influences, target.groups, replicates, groups, confidence=self.confidence)


def _foreground(
    fit: _Fit, found: DiceMeans, drawn: Floats, sums: CaseSums, target: CaseSums
) -> EstimatedMetric:
    """Mean over the foreground classes, with its interval."""
    defined = ~np.isnan(found.values)
    defined[fit.background] = False
    influences = found.influences[:, defined].sum(axis=1) / max(int(defined.sum()), 1)
    means = np.array([foreground_mean(row, fit.background) for row in drawn])
    return fit.bounded(foreground_mean(found.values, fit.background), influences, means, sums, target)


def _class_dice(
    estimate: EstimatedMetric, k: int, sums: CaseSums, target: CaseSums, parameter: float | None
) -> ClassDice:
    real, once = sums.dice[:, k], np.ones(len(sums.predicted))
    predicted, defined = int((target.predicted[:, k] > 0).sum()), int((~np.isnan(real)).sum())
    value, low, high = (_number(number) for number in estimate)
    return ClassDice(
        value=value,
        low=low,
        high=high,
        cases=predicted,
        unpredicted_cases=len(target.predicted) - predicted,
        missed_share=_number(weighted_mean(_presence_where_unpredicted(sums)[:, k], once)),
        calibration_dice=_number(weighted_mean(real, once)),
        calibration_cases=defined,
        undefined_calibration_cases=len(real) - defined,
        parameter=parameter,
    )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
