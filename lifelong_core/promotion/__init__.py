"""The promotion report: a new model against the current one on the same held-out cases.

- `inputs`: what is compared
- `report`: from inputs to the `document`
- `decision_changes`, `sign_flip`: which decisions change, and the test of whether one model errs less
- `runtime_cost`: size of a graph and time for one image
- `localization`: whether both models look at the same places; `compare_localization` finds out from images,
  such as an `image_sample`
- `evidence`, `verdict`: what differs, and what speaks for and against the promotion
- `unknowns`: what the figures do not tell
- `page`: the report as a self-contained HTML page
- `stability_page`: the page of `lifelong stability`, which compares the places of several classifiers

It knows the design loop, the deploy loop, fingerprints and localization, and neither the store nor torch.
"""

from lifelong_core.promotion.document import PromotionReport
from lifelong_core.promotion.inputs import ComparedModel, HeldOutCases, Population, SeenCases
from lifelong_core.promotion.report import promotion_report

__all__ = [
    "ComparedModel",
    "HeldOutCases",
    "Population",
    "PromotionReport",
    "SeenCases",
    "promotion_report",
]
