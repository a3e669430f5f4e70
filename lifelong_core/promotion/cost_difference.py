"""Expected costs of both models at one class prevalence."""

from pydantic import Field

from lifelong_core.design.validation.differences import MetricDifference
from lifelong_core.values.documents import Frozen


class CostDifference(Frozen):
    """Expected cost of both models at one class prevalence."""

    environment: str | None = Field(description="None: at the class shares of the held-out cases.")
    prevalence: tuple[float, ...]
    difference: MetricDifference
