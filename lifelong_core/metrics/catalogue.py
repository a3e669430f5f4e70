"""Catalogue of all metrics by acronym, and the relations between them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType

from numpy.typing import ArrayLike

from lifelong_core.metrics.calibration import binned, cost_loss, density, kernel, slope
from lifelong_core.metrics.counting import cost as net_benefit
from lifelong_core.metrics.counting import multiclass, one_versus_rest, stability, uncertainty_aware
from lifelong_core.metrics.counting.multiclass import (
    accuracies,
    balanced_accuracies,
    cohen_kappas,
    error_rates,
    expected_costs,
    matthews_correlations,
    normalised_expected_costs,
    weighted_cohen_kappas,
)
from lifelong_core.metrics.declaration import MetricInfo, Relation, RelationKind, declared_in
from lifelong_core.metrics.scores import ranking, scoring_rules
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

_MODULES = (
    *(multiclass, one_versus_rest, net_benefit, ranking, scoring_rules),
    *(binned, kernel, density, cost_loss, slope),
    *(uncertainty_aware, stability),
)
"""The catalogue lists metrics in this order."""

_RELATIONS: tuple[tuple[str, str, RelationKind, str, str], ...] = (
    ("AC", "ER", "same information", "AC = 1 - ER", "Remark 2.19"),
    ("AC", "BA", "same if balanced", "AC = BA for balanced tasks", "Prop. 2.22"),
    ("AC", "MCC", "ingredient", "the numerator of MCC is AC less the agreement by chance", "Def. 2.49"),
    (
        "AC",
        "PPV",
        "ingredient",
        "AC is the mean of PPV, weighted by how often k is predicted",
        "Cor. 2.40",
    ),
    ("AC", "TPR", "ingredient", "AC is the mean of TPR, weighted by prevalence", "Prop. 2.20"),
    ("BA", "J", "same information", "BA = (J + 1) / 2 for two classes", "Prop. 2.34"),
    ("BA", "TPR", "ingredient", "BA is the mean of TPR over the classes", "Def. 2.21"),
    (
        "BA",
        "WCK",
        "same if balanced",
        "WCK = (C BA - 1) / (C - 1) for balanced tasks with 0-1 costs",
        "Prop. 2.31",
    ),
    ("BA", "CK", "same if balanced", "CK = (C BA - 1) / (C - 1) for balanced tasks", "Prop. 2.31"),
    ("BA", "EC", "special case", "EC = 1 - BA for costs 1 / (C P(i)) of every confusion", "Def. 2.23"),
    ("CK", "WCK", "special case", "CK is WCK with 0-1 costs", "Def. 2.30"),
    ("EC", "ER", "special case", "ER is EC with 0-1 costs", "Prop. 2.24"),
    (
        "EC",
        "TPR",
        "ingredient",
        "EC weights the rates of every confusion, of which TPR is one",
        "Prop. 2.25",
    ),
    ("EC", "NEC", "ingredient", "NEC is EC over the expected cost of the naive classifier", "Def. 2.27"),
    (
        "EC",
        "NB",
        "special case",
        "NB(t) = P(1) - EC with costs 1 of a miss, t / (1 - t) of an alarm",
        "Def. 2.57",
    ),
    ("F_beta", "PPV", "ingredient", "F_beta is the weighted harmonic mean of PPV and TPR", "Def. 2.44"),
    ("F_beta", "TPR", "ingredient", "F_beta is the weighted harmonic mean of PPV and TPR", "Def. 2.44"),
    ("F_beta", "JAC", "same information", "F_1 = 2 JAC / (1 + JAC)", "Prop. 2.48"),
    ("J", "MCC", "ingredient", "|MCC| is the geometric mean of J and MK for two classes", "Cor. 2.52"),
    ("J", "MK", "ingredient", "J of the transposed confusion matrix is MK", "Prop. 2.42"),
    ("J", "TNR", "ingredient", "J = TPR + TNR - 1", "Def. 2.33"),
    ("J", "TPR", "ingredient", "J = TPR + TNR - 1", "Def. 2.33"),
    ("LR+", "TNR", "ingredient", "LR+ = TPR / (1 - TNR)", "Def. 2.32"),
    ("LR+", "TPR", "ingredient", "LR+ = TPR / (1 - TNR)", "Def. 2.32"),
    ("LR-", "TNR", "ingredient", "LR- = (1 - TPR) / TNR", "Def. 2.32"),
    ("LR-", "TPR", "ingredient", "LR- = (1 - TPR) / TNR", "Def. 2.32"),
    ("MCC", "MK", "ingredient", "|MCC| is the geometric mean of J and MK for two classes", "Cor. 2.52"),
    ("MK", "NPV", "ingredient", "MK = PPV + NPV - 1", "Def. 2.41"),
    ("MK", "PPV", "ingredient", "MK = PPV + NPV - 1", "Def. 2.41"),
    ("NB", "TNR", "ingredient", "NB(t) = P(1) TPR - P(2) (1 - TNR) t / (1 - t)", "Remark 2.58"),
    ("NB", "TPR", "ingredient", "NB(t) = P(1) TPR - P(2) (1 - TNR) t / (1 - t)", "Remark 2.58"),
    ("NPV", "TNR", "ingredient", "NPV is TNR of the transposed confusion matrix", "Prop. 2.39"),
    ("PPV", "TPR", "ingredient", "PPV is TPR of the transposed confusion matrix", "Prop. 2.39"),
    ("TPR", "FNR", "same information", "FNR = 1 - TPR", "Remark 2.17"),
    ("TNR", "FPR", "same information", "FPR = 1 - TNR", "Remark 2.17"),
    ("PPV", "FDR", "same information", "FDR = 1 - PPV", "Remark 2.36"),
    ("NPV", "FOR", "same information", "FOR = 1 - NPV", "Remark 2.36"),
    ("BS", "RBS", "same information", "RBS is the root of BS", "Def. 2.74"),
    ("BS", "BSS", "ingredient", "BSS = 1 - BS / BS of the prevalences", "Def. 2.74"),
    ("BS", "CE", "ingredient", "BS is refinement plus the mean square of CE", "Theorem 2.72"),
    (
        "ECE",
        "TCE",
        "special case",
        "ECE is TCE with confidences grouped into bins, and never larger",
        "Def. 2.66",
    ),
    (
        "CWCE",
        "MCE",
        "ingredient",
        "CWCE is the mean of MCE over the classes, grouped into bins",
        "Def. 2.68",
    ),
    (
        "ECE_KDE",
        "CE",
        "special case",
        "ECE_KDE is CE with a smoothed recalibration function",
        "Def. 2.70",
    ),
    (
        "ECCL",
        "EC",
        "ingredient",
        "ECCL is EC of Bayes decisions, less EC of those after recalibration",
        "Ferrer 2022",
    ),
    (
        "UA-accuracy",
        "AC",
        "special case",
        "AC is its limit without damping or tolerance",
        "Sperling et al.",
    ),
    (
        "UA-precision",
        "PPV",
        "special case",
        "PPV is its limit without damping or tolerance",
        "Sperling et al.",
    ),
    (
        "UA-recall",
        "TPR",
        "special case",
        "TPR is its limit without damping or tolerance",
        "Sperling et al.",
    ),
    ("UA-FPR", "FPR", "special case", "FPR is its limit without damping or tolerance", "Sperling et al."),
    (
        "UA-F1",
        "F_beta",
        "special case",
        "F_1 is its limit without damping or tolerance",
        "Sperling et al.",
    ),
    ("S_AJ", "CK", "same information", "S_AJ is CK of one prediction against the other", "Romanova 2020"),
    ("S_J", "JAC", "same information", "S_J is JAC of one prediction against the other", "Romanova 2020"),
    (
        "S_J",
        "S_HAPJ",
        "ingredient",
        "S_HAPJ takes the rarer of both agreements in place of n11",
        "Romanova 2020",
    ),
    ("S_J", "S_APJ", "ingredient", "S_APJ is S_J adjusted for agreement by chance", "Romanova 2020"),
    ("S_PO", "S_APO", "ingredient", "S_APO is S_PO adjusted for agreement by chance", "Romanova 2020"),
    ("S_Spearman", "S_Pearson", "special case", "S_Spearman is S_Pearson of mid-ranks", "Romanova 2020"),
)
"""Every pair once, from thesis Table 4.2 and from the definitions. Sources that are numbers refer to the thesis."""
RELATIONS: tuple[Relation, ...] = tuple(Relation(*row) for row in _RELATIONS)

METRICS: Mapping[str, MetricInfo] = MappingProxyType(
    {
        card.acronym: replace(
            card, relations=tuple(row for row in RELATIONS if card.acronym in (row.first, row.second))
        )
        for module in _MODULES
        for card in declared_in(module)
    }
)
"""Description of each metric, by acronym."""

PER_CLASS_COUNTS: tuple[str, ...] = tuple(
    card.acronym for card in METRICS.values() if card.family == "counting" and card.is_per_class
)
"""Acronyms of the per-class metrics that count decisions."""

_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {"F1": "F_beta", "RECALL": "TPR", "IOU": "JAC", "AUC": "AUROC"}
    | {
        name.upper(): card.acronym
        for card in METRICS.values()
        for name in (card.acronym, *card.name.split("/"), card.function.__name__)
    }
)

_OF_ALL_CLASSES: Mapping[str, Callable[..., Floats]] = MappingProxyType(
    {
        "AC": accuracies,
        "ER": error_rates,
        "BA": balanced_accuracies,
        "EC": expected_costs,
        "NEC": normalised_expected_costs,
        "WCK": weighted_cohen_kappas,
        "CK": cohen_kappas,
        "MCC": matthews_correlations,
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


def counting_metric(
    acronym: str,
    *,
    costs: ArrayLike | None = None,
    prevalence: ArrayLike | None = None,
    beta: float = 1.0,
    threshold: float = 0.5,
) -> Callable[[Floats], Floats]:
    """Return a metric that counts as a function of confusion matrices (..., C, D): shape (...), or (..., C) per class.

    Args:
        acronym: acronym of a metric that counts.
        costs: of EC, NEC and WCK, shape (C, D); None: 0-1 costs.
        prevalence: of EC and NEC, shape (C,); None: that of each matrix.
        beta: of F_beta.
        threshold: of NB.

    Raises:
        InvalidInputError: there is no such metric, or it does not count.

    Examples:
        >>> from lifelong_core.metrics.resampling.bootstrap import bootstrap_confusions
        >>> resampled = bootstrap_confusions([0] * 50 + [1] * 50, [0] * 40 + [1] * 60, classes=2)
        >>> intervals = resampled.of(counting_metric("F_beta", beta=2)).intervals()
        >>> [round(interval.estimate, 2) for interval in intervals]
        [0.83, 0.96]
    """
    if metric_info(acronym).family != "counting":
        raise InvalidInputError(f"{acronym} does not count decisions.", field="acronym")
    match acronym:
        case "EC" | "NEC":
            return partial(_OF_ALL_CLASSES[acronym], costs=costs, prevalence=prevalence)
        case "WCK":
            return partial(weighted_cohen_kappas, costs=costs)
        case "F_beta":
            return partial(METRICS[acronym].function, beta=beta)
        case "NB":
            return partial(METRICS[acronym].function, threshold=threshold)
        case _:
            return METRICS[acronym].function if acronym in PER_CLASS_COUNTS else _OF_ALL_CLASSES[acronym]
