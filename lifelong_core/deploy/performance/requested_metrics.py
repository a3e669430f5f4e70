"""Metrics that an estimate is asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from lifelong_core.deploy.performance.by_prevalence import AUROC
from lifelong_core.deploy.performance.derived_metrics import metric_names
from lifelong_core.deploy.performance.estimate import EstimatedMetric
from lifelong_core.metrics.catalogue import METRICS
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True)
class RequestedMetrics:
    """Metrics to estimate."""

    acronyms: tuple[str, ...]
    keys: tuple[str, ...]
    """of the estimates that are wanted"""

    @classmethod
    def of(cls, metrics: Sequence[str], classes: int) -> Self:
        """Metrics by acronym, or by acronym and class ("TPR[2]").

        Raises:
            InvalidInputError: no such metric, or one that decisions and probabilities alone do not give.
        """
        acronyms, keys = dict[str, None](), list[str]()
        for name in metrics:
            acronym = name.partition("[")[0]
            if acronym != AUROC and (acronym not in METRICS or METRICS[acronym].family != "counting"):
                raise InvalidInputError(
                    f"{name!r} cannot be estimated without labels.",
                    field="metrics",
                    hint="Name metrics that count decisions, such as AC, EC, BA, TPR, PPV, F_beta, MCC; or AUROC.",
                )
            names = metric_names(acronym, classes)
            if name != acronym and name not in names:
                raise InvalidInputError(f"{name!r} is not one of {', '.join(names)}.", field="metrics")
            acronyms[acronym] = None
            keys += names if name == acronym else [name]
        return cls(tuple(acronyms), tuple(dict.fromkeys(keys)))

    def select(self, estimates: Mapping[str, EstimatedMetric]) -> dict[str, EstimatedMetric]:
        """The wanted ones, in the order of the request."""
        return {key: estimates[key] for key in self.keys}
