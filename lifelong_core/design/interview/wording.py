"""Terms of the design loop: the same words in the terminal, the browser and reports."""

from collections.abc import Mapping
from types import MappingProxyType

from lifelong_core.design.method.schema import Confidence, Display
from lifelong_core.design.recommendation.document import DecidedBy

CONFIDENCE_WORDS: Mapping[Confidence, str] = MappingProxyType(
    {
        "stated": "stated by a source",
        "forced": "the only consistent reading",
        "inferred": "inferred",
        "not_in_source": "our proposal",
    }
)
"""Short texts of confidences; the method has sentences."""

DECIDED_BY: Mapping[DecidedBy, str] = MappingProxyType(
    {"person": "a person decided", "answers": "by the answers", "default": "by default", "nobody": "open"}
)
"""What decided a guide."""

DISPLAY_NAMES: Mapping[Display, str] = MappingProxyType(
    {
        "confusion_matrix": "confusion matrix",
        "roc_curve": "ROC curve",
        "precision_recall_curve": "precision-recall curve",
        "reliability_diagram": "reliability diagram",
        "decision_curve": "decision curve",
    }
)
"""Names of plots and tables."""

DIRECTIONS: Mapping[str, str] = MappingProxyType({"up": "higher is better", "down": "lower is better"})
"""Which values of a metric are better, by its orientation."""

THRESHOLD_RELATIONS: Mapping[str, str] = MappingProxyType({"up": "at least", "down": "at most"})
"""How a value compares with an acceptance threshold that it reaches, by the orientation of the metric."""

FEWEST_DIGITS, MOST_DIGITS = 4, 17
"""with 17 digits, every number has a text of its own"""


def format_distinct(first: float, second: float) -> tuple[str, str]:
    """Two numbers with four digits, or with as many as are needed to tell them apart.

    Examples:
        >>> format_distinct(0.87654321, 0.95)
        ('0.8765', '0.95')
        >>> format_distinct(0.9499996, 0.95)
        ('0.9499996', '0.95')
        >>> format_distinct(0.95, 0.95)
        ('0.95', '0.95')
    """
    for digits in range(FEWEST_DIGITS, MOST_DIGITS):
        one, other = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if first == second or float(one) != float(other):
            return one, other
    return f"{first:.{MOST_DIGITS}g}", f"{second:.{MOST_DIGITS}g}"
