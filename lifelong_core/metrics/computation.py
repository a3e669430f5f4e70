"""Computation of any metrics of the pool in one call."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.calibration.kernel import Estimate
from lifelong_core.metrics.catalogue import metric_info
from lifelong_core.metrics.custom_metric import CustomMetric, custom_by_acronym
from lifelong_core.metrics.evaluation import SharedComputations
from lifelong_core.metrics.inputs import CheckedInputs, Inputs, Parameters
from lifelong_core.metrics.invalid_outputs import value_of
from lifelong_core.metrics.undefined_reasons import Reason, reason_of
from lifelong_core.values.arrays import Floats, read_only
from lifelong_core.values.errors import InvalidInputError

UNDEFINED = "its function gave no number"
"""Reason of a custom metric that is nan."""


@dataclass(frozen=True, eq=False)
class MetricResults(Mapping[str, float | Floats]):
    """Values by acronym: a float, or shape (C,) for per-class metrics."""

    values_by_name: Mapping[str, float | Floats]
    reasons: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """reason of each value that is nan, for per-class metrics by class"""
    standard_errors: Mapping[str, float] = field(default_factory=dict[str, float])
    """standard errors of values computed on a subsample, around the value of all samples"""

    def __getitem__(self, name: str) -> float | Floats:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


def compute_metrics(
    names: Iterable[str],
    *,
    confusion_matrix: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    prevalence: ArrayLike | None = None,
    classes: int | None = None,
    rng: int | np.random.Generator = 0,
    custom: Iterable[CustomMetric] = (),
    **parameters: Any,
) -> MetricResults:
    """Compute metrics, with a reason for every undefined value; shared work is done once.

    Metrics that count need a confusion matrix, or labels with decisions or probabilities; all others need labels and
    probabilities. NB counts the given matrix, or else cuts the probabilities at its threshold (thesis Def. 2.57), or
    else counts the decisions.

    Args:
        names: acronyms, keys of METRICS or of custom metrics; or one acronym.
        confusion_matrix: shape (C, C), or (C, C + 1) where the last decision is to abstain; counts or weights.
        labels: shape (N,), true classes 0..C-1.
        probabilities: shape (N, C).
        decisions: shape (N,), classes, C to abstain, or -1 where the model gave no valid output: such a sample counts
            as the worst value (`invalid_outputs`), and its probabilities are ignored.
            None: the most probable class (ties: the lowest index).
        costs: for EC, NEC and WCK, shape (C, C), or (C, C + 1) with abstaining; None: 0-1 costs.
        prevalence: for EC and NEC, shape (C,), prevalence of the target population; None: that of the samples.
        classes: number of classes, for labels without all classes and without a matrix or probabilities.
        rng: seed or generator of the subsamples for KCE and ECE_KDE; each metric restarts from a seed.
        custom: metrics of the caller, computed where `names` holds their acronyms.
        parameters: fields of `Parameters`, such as `bins`, `beta`, `threshold`.

    Raises:
        InvalidInputError: there is no such metric or parameter, an input is missing, a shape or a value does not fit,
            or two inputs contradict each other.

    Examples:
        >>> found = compute_metrics(["AC", "TPR", "PPV"], confusion_matrix=[[8, 2, 0], [1, 9, 0], [5, 0, 0]])
        >>> found["AC"], found["TPR"].tolist()
        (0.68, [0.8, 0.9, 0.0])
        >>> found["PPV"].round(3).tolist(), found.reasons["PPV"][2]
        ([0.571, 0.818, nan], 'class 2 was never decided')
        >>> compute_metrics(["ECE"], labels=[0, 1], probabilities=[[0.75, 0.25], [0.5, 0.5]], bins=10)["ECE"]
        0.375
    """
    own = custom_by_acronym(custom)
    asked = list(dict.fromkeys([names] if isinstance(names, str) else names))
    cards = [metric_info(name) for name in asked if name not in own]
    chosen = Parameters.of(parameters)
    inputs = Inputs(
        confusion_matrix=confusion_matrix,
        labels=labels,
        probabilities=probabilities,
        decisions=decisions,
        costs=costs,
        prevalence=prevalence,
        classes=classes,
    )
    work = SharedComputations(CheckedInputs.of(inputs), chosen, rng, (card.acronym for card in cards))
    values: dict[str, float | Floats] = {}
    reasons: dict[str, Reason] = {}
    errors: dict[str, float] = {}
    for card in cards:
        value = value_of(card.acronym, work)
        if isinstance(value, Estimate):
            if value.samples < work.scored[0].size:
                errors[card.acronym] = value.standard_error
            value = value.value
        values[card.acronym] = read_only(value) if isinstance(value, np.ndarray) else value
        reason = reason_of(card.acronym, value, work)
        if reason is not None:
            reasons[card.acronym] = reason
    for name in asked:
        if name in own:
            values[name] = value = _custom_value(own[name], work.inputs)
            if np.isnan(value):
                reasons[name] = UNDEFINED
    values = {name: values[name] for name in asked}
    return MetricResults(MappingProxyType(values), MappingProxyType(reasons), MappingProxyType(errors))


def _custom_value(metric: CustomMetric, inputs: CheckedInputs) -> float:
    if inputs.labels is None:
        raise InvalidInputError(f"{metric.acronym} needs labels.", field="labels")
    decisions, probabilities = inputs.decisions, inputs.probabilities
    if decisions is None and probabilities is not None and "decisions" in metric.needs:
        decisions = probabilities.argmax(axis=1)
    return metric.value(
        labels=inputs.labels,
        decisions=decisions,
        probabilities=probabilities,
        invalid=int(inputs.invalid.sum()),
    )
