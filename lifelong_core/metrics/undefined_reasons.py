"""Reasons of undefined metrics, as sentences."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from lifelong_core.metrics.catalogue import METRICS, PER_CLASS_COUNTS
from lifelong_core.metrics.evaluation import SharedComputations
from lifelong_core.metrics.scores.at_target import cut_off
from lifelong_core.metrics.scores.ranking import OperatingPoints
from lifelong_core.values.arrays import Floats

Reason: TypeAlias = str | Mapping[int, str]
Cause: TypeAlias = Callable[["_Case"], str | None]
"""Returns a sentence, or None where the cause does not apply."""


def reason_of(acronym: str, value: float | Floats, work: SharedComputations) -> Reason | None:
    """Reason why a value is nan, for per-class metrics by class; None if no value is nan."""
    undefined = np.isnan(value)
    if not undefined.any():
        return None
    if undefined.ndim == 0:
        return _why(_Case(acronym, work))
    return MappingProxyType({k: _why(_Case(acronym, work, k)) for k in np.flatnonzero(undefined).tolist()})


class _Case:
    """A value that is nan."""

    def __init__(self, acronym: str, work: SharedComputations, k: int = 0) -> None:
        self.acronym = acronym
        self.work = work
        self.k = k
        """class, of a per-class metric"""
        is_counted = METRICS[acronym].family == "counting" and work.inputs.confusion is not None
        self.sizes = (
            work.confusion.sum(axis=1)
            if is_counted
            else np.bincount(work.scored[0], minlength=work.scored[1].shape[1])
        )
        """shape (C,), reference samples of each class"""

    def listed(self, missing: Floats) -> str:
        """Say of which classes there is no sample."""
        classes = ", ".join(map(str, np.flatnonzero(missing)))
        valid = " with a valid output" if self.work.inputs.invalid.any() else ""
        return f"no reference sample of class {classes}{valid}"


def _why(case: _Case) -> str:
    if case.sizes.sum() == 0:
        return "there is no sample" + (" with a valid output" if case.work.inputs.invalid.any() else "")
    for cause in (_missed_target, *_CAUSES.get(case.acronym, ())):
        reason = cause(case)
        if reason is not None:
            return reason
    return METRICS[case.acronym].undefined


def _missed_target(case: _Case) -> str | None:
    target = case.work.parameters.target
    if target is None or case.acronym not in PER_CLASS_COUNTS:
        return None
    wanted, value = target
    metric, points = case.work.one_class_metric(wanted), OperatingPoints.of(case.work.target_rankings[case.k])
    if np.isnan(cut_off(points, metric=metric, target=value)):
        return f"no cut-off for class {case.k} reaches {wanted} = {value:g}"
    return f"at the cut-off for class {case.k}: {METRICS[case.acronym].undefined}"


def _absent(case: _Case) -> str | None:
    is_class = np.arange(case.sizes.size) == case.k
    return case.listed(is_class) if case.sizes[case.k] == 0 else None


def _all_positive(case: _Case) -> str | None:
    is_all = case.sizes[case.k] == case.sizes.sum()
    return f"every reference sample is of class {case.k}" if is_all else None


def _never_decided(case: _Case) -> str | None:
    is_never = case.work.one_versus_rest.decided_positive[case.k] == 0
    return f"class {case.k} was never decided" if is_never else None


def _always_decided(case: _Case) -> str | None:
    is_always = case.work.one_versus_rest.decided_negative[case.k] == 0
    return f"class {case.k} was always decided" if is_always else None


def _neither(case: _Case) -> str | None:
    return f"class {case.k} is neither present nor decided"


def _absent_classes(case: _Case) -> str | None:
    return case.listed(case.sizes == 0)


def _absent_in_population(case: _Case) -> str | None:
    given = case.work.inputs.prevalence
    missing = (case.sizes == 0) & (given is not None and given > 0)
    return f"{case.listed(missing)}, whose prevalence is positive" if missing.any() else None


def _one_class(case: _Case) -> str | None:
    return "every reference sample is of one class" if np.count_nonzero(case.sizes) < 2 else None


def _says(sentence: str) -> Cause:
    return lambda _: sentence


_CAUSES: Mapping[str, tuple[Cause, ...]] = MappingProxyType(
    dict.fromkeys(("TPR", "FNR", "AP"), (_absent,))
    | dict.fromkeys(("TNR", "FPR"), (_all_positive,))
    | dict.fromkeys(("J", "AUROC"), (_absent, _all_positive))
    | dict.fromkeys(("PPV", "FDR"), (_never_decided,))
    | dict.fromkeys(("NPV", "FOR"), (_always_decided,))
    | dict.fromkeys(("F_beta", "JAC"), (_neither,))
    | {
        "LR+": (_absent, _all_positive, _never_decided),
        "LR-": (_absent, _all_positive, _always_decided),
        "MK": (_never_decided, _always_decided),
        "BA": (_absent_classes,),
        "EC": (_absent_in_population,),
        "NEC": (
            _absent_in_population,
            _says("0/0: neither the decisions nor the naive classifier cost anything"),
        ),
        "WCK": (_says("0/0: decisions of the same frequencies drawn at random would cost nothing"),),
        "CK": (_says("0/0: one class is all of the reference and of the decisions"),),
        "MCC": (_one_class, _says("every decision is the same")),
        "NB": (_says("threshold 1 has no exchange rate"),),
        "BSS": (_says("0/0: every reference sample is of one class, and predicted with certainty"),),
        "KCE": (_says("fewer than two samples, or a bandwidth of 0: the predictions hardly differ"),),
        "ECCL": (_absent_in_population, _says("fewer than two samples: none is left to recalibrate by")),
        "ECE_KDE": (_says("fewer than two samples, or one at which the kernels of all others are 0"),),
    }
)
"""Causes in order: the first that applies is the reason; every nan has one of them."""
