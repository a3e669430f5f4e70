"""Target prevalence of the candidate."""

import numpy as np

from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate
from lifelong_core.values.arrays import Floats


def add_pseudo_samples(estimate: PrevalenceEstimate, calibration_samples: int) -> Floats:
    """Estimate with half a further sample of each class, shape (C,), positive (Jeffreys' prior).

    The window counts for at most as many samples as the calibration set has, so that an unseen class gets no smaller
    prevalence than the calibration set could show. The class may return, and must then be decided and detected.
    """
    raised = min(estimate.effective_n, calibration_samples) * estimate.prevalence + 0.5
    return raised / raised.sum()


def limit_step(assumed: Floats, wanted: Floats, maximum_step: float) -> Floats:
    """The wanted prevalence, or the point on the way to it at the maximum L1 distance from the assumed prevalence."""
    distance = float(np.abs(wanted - assumed).sum())
    return wanted if distance <= maximum_step else assumed + maximum_step / distance * (wanted - assumed)


def is_return(assumed: Floats, target: Floats, previous: Floats | None) -> bool:
    """Whether the target lies back towards the prevalence before the last swap."""
    if previous is None or previous.shape != assumed.shape:
        return False
    return float((target - assumed) @ (previous - assumed)) > 0
