"""Registry of the confidence methods."""

from collections.abc import Mapping
from types import MappingProxyType

from lifelong_core.deploy.performance.confidence.base import ConfidenceMethod
from lifelong_core.deploy.performance.confidence.difference import (
    ClassSpecificDifferenceOfConfidences,
    DifferenceOfConfidences,
)
from lifelong_core.deploy.performance.confidence.normalised import NormalisedCalibration
from lifelong_core.deploy.performance.confidence.scaling import (
    AverageConfidence,
    ClassSpecificTemperatureScaling,
    TemperatureScaling,
    VectorScaling,
)
from lifelong_core.deploy.performance.confidence.thresholds import (
    AverageThresholdedConfidence,
    ClassSpecificAverageThresholdedConfidence,
    ClassSpecificScaledAverageThresholdedConfidence,
    ScaledAverageThresholdedConfidence,
)

CONFIDENCE_METHODS: Mapping[str, type[ConfidenceMethod]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            AverageConfidence,
            TemperatureScaling,
            VectorScaling,
            NormalisedCalibration,
            ClassSpecificTemperatureScaling,
            DifferenceOfConfidences,
            ClassSpecificDifferenceOfConfidences,
            AverageThresholdedConfidence,
            ClassSpecificAverageThresholdedConfidence,
            ScaledAverageThresholdedConfidence,
            ClassSpecificScaledAverageThresholdedConfidence,
        )
    }
)
"""Methods by name, in the order of table 1 of Li et al. 2022."""

COUNTERPARTS: Mapping[str, str] = MappingProxyType(
    {name: name.removeprefix("CS-") for name in CONFIDENCE_METHODS if name.startswith("CS-")}
)
"""Class-agnostic counterpart of each class-specific method."""
