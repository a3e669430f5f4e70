"""Registry of the quantifiers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.quantification.automatic import AutomaticQuantifier
from lifelong_core.deploy.quantification.counting import (
    AdjustedClassifyAndCount,
    BlackBoxShiftEstimation,
    ClassifyAndCount,
    ProbabilisticAdjustedClassifyAndCount,
    ProbabilisticClassifyAndCount,
)
from lifelong_core.deploy.quantification.em import (
    ExpectationMaximization,
    MaximumLikelihoodLabelShift,
)
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.hdy import HellingerDistanceHistograms
from lifelong_core.deploy.quantification.kdey import KernelDensityMaximumLikelihood
from lifelong_core.deploy.quantification.kdey_divergence import (
    KernelDensityCauchySchwarz,
    KernelDensityHellinger,
)
from lifelong_core.values.arrays import as_parameter
from lifelong_core.values.errors import InvalidInputError

_METHODS: Mapping[str, type[FittedQuantifier]] = MappingProxyType(
    {
        kind.method: kind
        for kind in (
            ClassifyAndCount,
            ProbabilisticClassifyAndCount,
            AdjustedClassifyAndCount,
            ProbabilisticAdjustedClassifyAndCount,
            BlackBoxShiftEstimation,
            ExpectationMaximization,
            MaximumLikelihoodLabelShift,
            HellingerDistanceHistograms,
            KernelDensityMaximumLikelihood,
            KernelDensityHellinger,
            KernelDensityCauchySchwarz,
            AutomaticQuantifier,
        )
    }
)

QUANTIFIERS: tuple[str, ...] = tuple(_METHODS)
"""Names of all quantifiers."""


@dataclass(frozen=True)
class Quantifier:
    """Method with its settings, not yet fitted."""

    method: str
    settings: Mapping[str, float] = field(default_factory=dict[str, float])

    def fit(self, calibration: LabeledLogits) -> FittedQuantifier:
        """Fit on a calibration set; needed once per calibration set.

        Raises:
            UnidentifiableError: a class has no sample, or the method cannot tell the classes apart.
        """
        return _METHODS[self.method](calibration, self.settings)


def quantifier(name: str, **settings: float) -> Quantifier:
    """Return a method of prevalence estimation (thesis section 6.1.4) by name.

    Args:
        name: one of QUANTIFIERS.
        settings: settings of the method, e.g. `bandwidth` of KDEyML.

    Raises:
        InvalidInputError: there is no such method or setting.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.permutation(np.repeat([0, 1], 300))
        >>> calibration = LabeledLogits(3 * np.eye(2)[labels] + rng.normal(size=(600, 2)), labels)
        >>> shifted = rng.permutation(np.repeat([0, 1], [450, 50]))
        >>> window = 3 * np.eye(2)[shifted] + rng.normal(size=(500, 2))
        >>> fitted = quantifier("MLLS").fit(calibration)
        >>> estimate = fitted.estimate(window)
        >>> estimate.prevalence.round(2).tolist()
        [0.9, 0.1]
        >>> estimate.low.round(2).tolist(), estimate.high.round(2).tolist()
        ([0.88, 0.07], [0.93, 0.12])
    """
    kind = _METHODS.get(name)
    if kind is None:
        raise InvalidInputError(
            f"there is no quantifier {str(name)[:80]!r}.",
            field="quantifier",
            hint=f"Use one of {', '.join(QUANTIFIERS)}.",
        )
    for setting, value in settings.items():
        if setting not in kind.defaults:
            known = ", ".join(kind.defaults) or "none"
            raise InvalidInputError(
                f"{name} has no such setting.", field=setting, hint=f"Its settings: {known}."
            )
        as_parameter(value, field=setting)
    return Quantifier(name, MappingProxyType({key: float(value) for key, value in settings.items()}))
