"""Is a calibration set good enough to publish a head that is fitted on it?

`report`: the figures and the verdict; `means`: means with intervals; `label_order`: exchanged labels; `findings`: what
is refused and what is only warned of.
"""

from lifelong_core.deploy.acceptance.findings import Finding
from lifelong_core.deploy.acceptance.means import Figure
from lifelong_core.deploy.acceptance.report import (
    CalibrationReport,
    HeadFigures,
    compare_with_promoted,
    examine_calibration,
)

__all__ = [
    "CalibrationReport",
    "Figure",
    "Finding",
    "HeadFigures",
    "compare_with_promoted",
    "examine_calibration",
]
