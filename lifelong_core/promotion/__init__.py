"""The promotion report: a new model against the current one on the same held-out cases.

- `document`: what is compared; the report as a document
- `report`: from inputs to the document
- `decision_changes`: decisions that change, and the test of whether one model errs less
- `evidence`, `verdict`: differences; what speaks for and against the promotion, and what the figures do not tell
- `compare_localization`: whether both models look at the same places of images
- `runtime_cost`: size of a graph and time for one image
- `page`: the report as HTML; the page of `lifelong stability`

It knows the design loop, the deploy loop, fingerprints and localization, and neither the store nor torch.
"""

from lifelong_core.promotion.document import (
    ComparedModel,
    HeldOutCases,
    Population,
    PromotionReport,
    SeenCases,
)
from lifelong_core.promotion.report import promotion_report

__all__ = [
    "ComparedModel",
    "HeldOutCases",
    "Population",
    "PromotionReport",
    "SeenCases",
    "promotion_report",
]
