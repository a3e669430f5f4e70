"""Warnings about a calibration set: limits of every estimate from it, as sentences."""

from collections.abc import Sequence

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits, independent_cases
from lifelong_core.values.arrays import Floats

FEW_SAMPLES = 200
FEW_OF_A_CLASS = 30
"""With fewer samples of a class, coverage depends on the draw of the calibration set. Nominal 95 % intervals, with
biases taken as certain, covered .98, .93 and .89 for windows of 100, 500 and 2,000 with fewer samples (four
populations, ten draws or more), and .96, .96 and .95 with more (seventeen)."""

RULE_OF_THREE = 3.0
"""With no mistake in n cases, the one-sided 95 % bound of the share of mistakes is about 3 / n."""

_NAMED = 5
"""Most classes that a sentence names; of more it gives the number."""


def find_cautions(calibration: LabeledLogits, blurred: Floats | None) -> tuple[str, ...]:
    """Warnings as sentences; empty for a sound calibration set.

    Args:
        calibration: the calibration set.
        blurred: shape (K, C), changes of the prevalence that may not show (see `separation`), if they were examined.

    Examples:
        >>> labels = np.repeat([0, 1], [250, 12])
        >>> logits = np.eye(2)[labels]
        >>> logits[[0, -1]] = logits[[-1, 0]]  # one mistake in each class
        >>> find_cautions(LabeledLogits(logits, labels), None)
        ('Fewer than 30 calibration samples are of class 1: intervals may be too narrow.',)
    """
    found: list[str] = []
    rare = [k for k, count in enumerate(calibration.counts.tolist()) if count < FEW_OF_A_CLASS]
    if rare:
        found.append(
            f"Fewer than {FEW_OF_A_CLASS} calibration samples are of {_named(rare)}: intervals may be too narrow."
        )
    if calibration.samples < FEW_SAMPLES:
        found.append(
            f"There are fewer than {FEW_SAMPLES} calibration samples ({calibration.samples}): intervals may be too "
            "narrow."
        )
    found += _unmistaken(calibration)
    if blurred is not None and blurred.shape[0]:
        mixed = [
            k for k, weight in enumerate(abs(blurred).max(axis=0).tolist()) if weight > 1 / blurred.shape[1]
        ]
        found.append(
            f"The calibration set does not show that mixes of {_named(mixed)} look different: their prevalences may "
            "be confused."
        )
    return tuple(found)


def _unmistaken(calibration: LabeledLogits) -> list[str]:
    """Warning about classes without a mistaken calibration case (Hanley and Lippman-Hand 1983).

    Such cases have no spread: no interval from them shows the mistakes that further cases would.
    """
    mistaken = calibration.labels[calibration.logits.argmax(axis=1) != calibration.labels]
    cases = independent_cases(calibration)
    flawless = np.setdiff1d(np.flatnonzero(cases > RULE_OF_THREE), mistaken)
    if not flawless.size:
        return []
    counts = cases[flawless]
    bound = RULE_OF_THREE / int(counts.min())
    number = f"{counts.min():,}" + (" or more" if np.ptp(counts) else "")
    return [
        f"No calibration case of {_named(flawless.tolist())} was mistaken in {number}, so up to {100 * bound:.2g} % "
        f"may be: intervals narrower than ±{bound:.2g} are not certain."
    ]


def _named(classes: Sequence[int]) -> str:
    if len(classes) > _NAMED:
        return f"{len(classes)} classes"
    *first, last = (str(k) for k in classes)
    return f"class {last}" if not first else f"classes {', '.join(first)} and {last}"
