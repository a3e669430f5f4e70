"""Settings that are legal, but that nearly always are a mistake: taken only with a reason."""

import numpy as np

from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import check_reason
from lifelong_core.values.preprocessing import Preprocessing

FORCE = "If it is right all the same, give the reason as `force_reason` (`--force-because`)."
_SMALLEST_DEVIATION = 1 / 256
"""An input of 0..255 has a standard deviation of 1/255 on the 0..1 scale; no network needs a smaller one."""


def check_costs(costs: Floats, *, force_reason: str | None = None) -> dict[str, str]:
    """Make sure that right decisions cost no more than others, and that the case matters for the decision.

    Args:
        costs: (C, D), from `as_costs`.
        force_reason: reason for taking them all the same.

    Returns:
        What the reason overrides, with the reason, for the audit log; empty: nothing.

    Raises:
        InvalidInputError: they are implausible and there is no reason, or the reason is empty.
    """
    right = np.diagonal(costs)
    cheaper = np.argwhere(costs < right[:, None])
    constant = np.flatnonzero((costs <= costs.min(axis=1, keepdims=True)).all(axis=0))
    finding = None
    if len(cheaper):
        row, column = cheaper[0].tolist()
        finding = (
            f"where class {row} is true, decision {column} costs {costs[row, column]:g} and the right one"
            f" {right[row]:g}: a wrong decision or an abstention is cheaper than the right one."
        )
    elif len(constant):
        finding = f"decision {constant[0]} never costs more than another one, so every case would get it."
    hint = "Rows are true classes, columns decisions; state costs, not gains: 0 for right decisions."
    return _forced(finding, "costs", hint, force_reason)


def check_normalisation(
    preprocessing: Preprocessing | None, *, force_reason: str | None = None
) -> dict[str, str]:
    """Make sure that mean and standard deviation are those of pixels in 0..1; see `check_costs`."""
    finding, field = None, ""
    if preprocessing is not None:
        mean, deviation = preprocessing.mean, preprocessing.standard_deviation
        if min(mean) < 0 or max(mean) > 1:
            field = "preprocessing.mean"
            finding = f"the mean {list(mean)} is impossible: pixels lie in 0..1."
        elif min(deviation) < _SMALLEST_DEVIATION or max(deviation) > 1:
            field = "preprocessing.standard_deviation"
            finding = f"the standard deviation {list(deviation)} is implausible for pixels in 0..1."
    hint = "If they are on the scale 0..255, divide mean and standard_deviation by 255."
    return _forced(finding, field, hint, force_reason)


def _forced(finding: str | None, field: str, hint: str, reason: str | None) -> dict[str, str]:
    if reason is not None:
        check_reason(reason, field="force_reason", hint="Say in a few words why it is right all the same.")
    if finding is None:
        return {}
    if reason is None:
        raise InvalidInputError(finding, field=field, hint=f"{hint} {FORCE}")
    return {"force_reason": reason, "finding": finding}
