"""All metrics by acronym."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from lifelong_core.metrics.catalogue.agreement import AGREEMENT
from lifelong_core.metrics.catalogue.metric_info import MetricInfo
from lifelong_core.metrics.catalogue.multiclass import MULTICLASS
from lifelong_core.metrics.catalogue.per_class import PER_CLASS
from lifelong_core.metrics.catalogue.relations import RELATIONS
from lifelong_core.metrics.catalogue.scores import SCORES
from lifelong_core.values.errors import InvalidInputError

METRICS: Mapping[str, MetricInfo] = MappingProxyType(
    {
        card.acronym: replace(
            card, relations=tuple(one for one in RELATIONS if card.acronym in (one.first, one.second))
        )
        for card in (*MULTICLASS, *PER_CLASS, *SCORES, *AGREEMENT)
    }
)
"""Description of each metric, by acronym."""

PER_CLASS_COUNTS: tuple[str, ...] = tuple(card.acronym for card in PER_CLASS)
"""Acronyms of the per-class metrics that count decisions."""

_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {"F1": "F_beta", "RECALL": "TPR", "IOU": "JAC", "AUC": "AUROC"}
    | {
        name.upper(): card.acronym
        for card in METRICS.values()
        for name in (card.acronym, *card.name.split("/"), card.function.__name__)
    }
)


def metric_info(name: str) -> MetricInfo:
    """Description of a metric that `compute_metrics` computes.

    Raises:
        InvalidInputError: there is no such metric, or it needs other inputs.

    Examples:
        >>> metric_info("TPR").name
        'Sensitivity'
        >>> metric_info("balanced accuracy")
        Traceback (most recent call last):
        ...
        lifelong_core.values.errors.InvalidInputError: names: there is no metric 'balanced accuracy'. Did you mean BA?
    """
    card = METRICS.get(name)
    if card is None:
        raise InvalidInputError(
            f"there is no metric {str(name)[:80]!r}.", field="names", hint=_suggestion(str(name))
        )
    if not card.is_in_pool:
        why = "has no better end" if card.orientation == "one" else "needs other inputs"
        raise InvalidInputError(
            f"{name} {why}.",
            field="names",
            hint=f"Call lifelong_core.metrics.{card.function.__name__}.",
        )
    return card


def _suggestion(name: str) -> str:
    """Hint with the probable acronym: parameters are not part of a name."""
    bare = name.partition("@")[0].strip().upper()
    close = get_close_matches(bare, _OTHER_NAMES, n=1, cutoff=0.7)
    if not close:
        return f"Metrics: {', '.join(METRICS)}."
    hint = f"Did you mean {_OTHER_NAMES[close[0]]}?"
    return f"{hint} Give parameters as arguments." if "@" in name else hint
