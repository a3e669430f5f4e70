"""Names of the methods and what each assumes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

POSTERIORS: Final = "posteriors"
RATES: Final = "rates"
MATCHED: Final = "matched"
AUTO: Final = "auto"

_PREVALENCE_ONLY = "Within each class, the model's outputs are distributed as in the calibration set"

ASSUMPTIONS: Mapping[str, str] = MappingProxyType(
    {
        POSTERIORS: f"{_PREVALENCE_ONLY}, and the calibrated probabilities are right there.",
        RATES: f"{_PREVALENCE_ONLY}: only the prevalence has changed.",
        MATCHED: f"{_PREVALENCE_ONLY}, up to a common factor of all logits: the prevalence and the logits' scale may"
        " have changed, nothing else. A constant shift of one class's logit biases the estimate.",
    }
)
"""What the methods assume that use the estimated prevalence."""
