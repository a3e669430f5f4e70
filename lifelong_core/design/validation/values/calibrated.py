"""Calibration errors of perfectly calibrated predictions, beside those of a model."""

import math
from typing import Any

import numpy as np

from lifelong_core.design.validation.outputs import Samples
from lifelong_core.design.validation.values.evaluation import Recipe, mean_over_classes
from lifelong_core.metrics.calibration.reference import CALIBRATION_ERRORS, reference_of
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from lifelong_core.values.arrays import Floats

MOST_DRAWS = 200
KERNEL_DRAWS = 60
FEWEST_DRAWS = 20
DRAWN_PROBABILITIES = 20_000_000
"""Most probabilities from which labels are drawn, over all draws: 0.2 s"""
KERNELS = ("KCE", "ECE_KDE")
HIGH = 0.95
"""Quantile of the reference"""


def calibrated_draws(recipe: Recipe, own: Samples) -> Floats | None:
    """A calibration error with labels drawn from the probabilities, shape (R,) or (R, C); None for other metrics.

    Samples without a valid output have no part in it, and so count fully in the excess.
    """
    valid = own.part(own.is_valid)
    if recipe.acronym not in CALIBRATION_ERRORS or valid.size < 2:
        return None
    most = KERNEL_DRAWS if recipe.acronym in KERNELS else MOST_DRAWS
    draws = int(np.clip(DRAWN_PROBABILITIES // (valid.size * valid.classes), FEWEST_DRAWS, most))
    found = reference_of(
        recipe.acronym,
        valid.labels,
        valid.scores,
        valid.unit,
        recipe.parameters,
        draws=draws,
        seed=recipe.seed,
    ).draws
    if np.isnan(found).any():
        return None
    errors = mean_over_classes(found, recipe.weights) if recipe.acronym == "CWCE" else found
    return errors * (valid.size / own.size)


def is_unbiased(recipe: Recipe) -> bool:
    """Whether the metric is 0 on average for calibrated predictions."""
    return recipe.acronym == "KCE" and recipe.parameters.estimator == "unbiased"


def reference_fields(estimate: float, drawn: Floats) -> dict[str, Any] | None:
    """The fields of a `CalibrationReference` from the errors of calibrated predictions, shape (R,)."""
    if math.isnan(estimate):
        return None
    mean = float(drawn.mean())
    high = float(np.quantile(drawn, HIGH))
    return {"mean": mean, "high": high, "excess": estimate - mean, "draws": drawn.size}


def debias(values: Bootstrap, chance: float) -> Bootstrap:
    """A value of shape () less its bias by chance, with the spread of the replicates around it.

    Examples:
        >>> found = debias(Bootstrap(np.array(0.5), np.array([0.5, 0.75]), ()), 0.25)
        >>> float(found.estimate), found.replicates.tolist()
        (0.25, [0.125, 0.375])
    """
    defined = values.replicates[~np.isnan(values.replicates)]
    moved = float(values.estimate) - chance
    centre = float(defined.mean()) if defined.size else 0.0
    return Bootstrap(
        np.asarray(moved),
        values.replicates - centre + moved,
        tuple(LeftOut(part.values - chance, part.multiplicity) for part in values.left_out),
    )
