"""For which prevalence the candidate is fitted."""

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.deploy.quantification.estimate import PrevalenceEstimate


def add_pseudo_samples(estimate: PrevalenceEstimate, calibration_samples: int) -> Floats:
    """The estimate after half a sample more of each class, shape (C,), positive (Jeffreys' prior).

    The window counts for no more samples than the calibration set has: a class that was not seen is not taken to be
    rarer than the calibration set could tell. It may come back, and then has to be decided and noticed.
    """
    raised = min(estimate.effective_n, calibration_samples) * estimate.prevalence + 0.5
    return raised / raised.sum()


def limit_step(assumed: Floats, wanted: Floats, maximum_step: float) -> Floats:
    """The wanted prevalence, or the point on the way to it whose L1 distance from the assumed one is the maximum."""
    distance = float(np.abs(wanted - assumed).sum())
    return wanted if distance <= maximum_step else assumed + maximum_step / distance * (wanted - assumed)


def is_return(assumed: Floats, target: Floats, previous: Floats | None) -> bool:
    """Does the target lie on the side from which the last swap came?"""
    if previous is None or previous.shape != assumed.shape:
        return False
    return float((target - assumed) @ (previous - assumed)) > 0
