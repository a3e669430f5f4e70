"""Settings of the uncertainty-aware scores: the grid of sigma and damping, the threshold, the kind of uncertainty."""

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.uncertainties import MOST_DAMPINGS, MOST_SIGMAS
from lifelong_core.values.uncertainty_kinds import UncertaintyKind

LARGEST_SIGMA = 10.0
"""Beyond, nothing changes: the weights are proportional to the distance from the threshold"""
LARGEST_DAMPING = 1e6
SIGMAS = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
DAMPINGS = (0.0, 0.5, 1.0, 2.0)
"""Those of the paper (fig. 8)"""


def _ascending(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(low >= high for low, high in pairwise(values)):
        raise ValueError("expected different numbers in ascending order")
    return values


class UncertaintySettings(FrozenDocument):
    """The grid on which uncertainty-aware scores are computed."""

    sigmas: Annotated[
        tuple[Annotated[float, Field(ge=0, le=LARGEST_SIGMA)], ...],
        Field(min_length=1, max_length=MOST_SIGMAS),
        AfterValidator(_ascending),
    ] = Field(default=SIGMAS, description="Spreads of the threshold, ascending.")
    dampings: Annotated[
        tuple[Annotated[float, Field(ge=0, le=LARGEST_DAMPING)], ...],
        Field(min_length=1, max_length=MOST_DAMPINGS),
        AfterValidator(_ascending),
    ] = Field(default=DAMPINGS, description="Damping factors of the uncertainties, ascending.")
    threshold: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.5, description="Probability of the positive class from which on the decision is positive."
    )
    kind: UncertaintyKind = Field(
        default="other", description="What the given uncertainties are; their largest possible value follows."
    )
