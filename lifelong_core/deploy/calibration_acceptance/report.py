"""Report on a calibration set: the figures of the head fitted on it, and whether it may be published."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lifelong_core.decision_rules.rules import BayesRule, DecisionRule
from lifelong_core.deploy.calibration_acceptance.class_mix_mean import ClassMixMean, Figure
from lifelong_core.deploy.calibration_acceptance.findings import (
    Finding,
    constant_costs,
    dear_decisions,
    exchanged_classes,
    few_cases,
    noisy_labels,
    not_crossfitted,
    sigmoid_outputs,
    uninformative,
    worse_than_previous,
    worse_than_promoted,
)
from lifelong_core.deploy.calibration_acceptance.wrong_labels import find_exchanged_labels, find_label_noise
from lifelong_core.deploy.checks import as_class_names
from lifelong_core.deploy.head import ABSTAIN, HeadOutput, PostProcessingHead
from lifelong_core.deploy.head_fitting import crossfitted_output, held_out_output
from lifelong_core.deploy.labeled import LabeledLogits, crossfitting_folds, independent_cases
from lifelong_core.values.arrays import Floats, Integers, as_costs

_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class HeadFigures:
    """Figures of a head on the cases of a calibration set, or the differences of two heads."""

    accuracy: Figure
    """share of cases whose most probable class is the true one, in [0, 1]"""
    expected_cost: Figure
    """mean cost of the decisions, by the costs of the task"""
    calibration_error: Figure
    """mean probability of the most probable class less the accuracy, in [-1, 1]; above 0 the head is over-confident.
    The sign is kept, because the noise of binned errors hides it for small sets."""
    brier_score: Figure
    """mean squared distance of the probabilities from the one-hot label, in [0, 2]"""


@dataclass(frozen=True)
class CalibrationReport:
    """Figures of a calibration set and of the head fitted on it, under the set's class mix, with findings against
    them.
    """

    class_names: tuple[str, ...]
    counts: tuple[int, ...]
    """cases of each class"""
    groups: int | None
    """number of groups; None: the cases are independent"""
    crossfitted: bool
    """True: each case is judged by a head that was fitted without its fold; False: the groups allow no folds, so the
    figures are optimistic"""
    new: HeadFigures
    """the head that would be published"""
    old: HeadFigures | None
    """the model's present default head on the same cases; None: it has none"""
    change: HeadFigures | None
    """new less old, case by case"""
    previous: HeadFigures | None
    """a head fitted on the previous calibration set, on the cases of that set, under the class mix of this set; None:
    there is no previous set, or it is this set"""
    skill: Figure
    """1 - log loss of the head / log loss of the prevalence alone; 0: the head is no better than the prevalence"""
    majority_accuracy: float
    """accuracy of always predicting the most frequent class"""
    constant_cost: float
    """expected cost of the cheapest decision by prevalence alone"""
    constant_decision: str
    """the cheapest decision by prevalence alone"""
    findings: tuple[Finding, ...]

    @property
    def samples(self) -> int:
        """Number of cases."""
        return sum(self.counts)

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Findings that forbid publishing the head, unless an administrator overrides them."""
        return tuple(finding for finding in self.findings if finding.severity == "refusal")

    def to_document(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "schema_version": 1,
            "verdict": "refused" if self.refusals else "accepted",
            "samples": self.samples,
            **asdict(self),
        }


def examine_calibration(
    calibration: LabeledLogits,
    costs: Floats,
    class_names: Sequence[str],
    *,
    decision_rule: DecisionRule | None = None,
    old_head: PostProcessingHead | None = None,
    previous: LabeledLogits | None = None,
) -> CalibrationReport:
    """Fit a head on a calibration set, and report its figures and the findings against publishing it.

    The findings about costs judge the decisions of least expected cost, whatever the rule: they tell whether the
    probabilities are right, and a rule such as a target sensitivity may be dear on purpose.

    Args:
        calibration: at least one case of each class.
        costs: of the task, shape (C, D), D = C or C + 1 (abstain).
        class_names: C names.
        decision_rule: of the task, by which the head decides; None: the Bayes rule.
        old_head: the model's present default head.
        previous: the model's present calibration set.

    Raises:
        InvalidInputError: a shape does not fit.
        UnidentifiableError: a class has no case.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> labels = np.arange(200) % 2
        >>> data = LabeledLogits(2 * np.eye(2)[labels] + rng.normal(size=(200, 2)), labels)
        >>> costs = np.array([[0.0, 1.0], [1.0, 0.0]])
        >>> report = examine_calibration(data, costs, ("benign", "malignant"))
        >>> round(report.new.accuracy.value, 2), report.findings
        (0.95, ())
        >>> swapped = LabeledLogits(data.logits, 1 - labels)
        >>> [finding.code for finding in examine_calibration(swapped, costs, ("benign", "malignant")).refusals]
        ['exchanged_labels', 'no_better_than_prevalence', 'dearer_than_constant']
    """
    names, matrix = as_class_names(class_names), as_costs(costs, classes=calibration.classes)
    mix = calibration.prevalence
    new = _CaseScores.of(calibration, crossfitted_output(calibration, matrix, mix), matrix, mix)
    decided = new
    if decision_rule is not None and not isinstance(decision_rule, BayesRule):
        output = crossfitted_output(calibration, matrix, mix, decision_rule=decision_rule)
        decided = _CaseScores.of(calibration, output, matrix, mix)
    old = before = None
    if old_head is not None and old_head.costs.shape == matrix.shape:
        old = _CaseScores.of(calibration, held_out_output(calibration, old_head), matrix, mix)
    if previous is not None and previous != calibration and previous.counts.all():
        before = _CaseScores.of(previous, crossfitted_output(previous, matrix, mix), matrix, mix)
    constant = constant_costs(matrix, mix)
    cheapest = int(np.argmin(constant))
    decision = (*names, ABSTAIN)[cheapest]
    crossfitted, skill = bool(crossfitting_folds(calibration).any()), _skill(calibration, new)
    findings = [
        *_data_findings(calibration, names, crossfitted=crossfitted),
        *uninformative(skill, new.figures().accuracy, float(mix.max())),
        *dear_decisions(new.mean(matrix[calibration.labels, cheapest] - new.cost), decision),
        *([] if before is None else _findings_since(before, new)),
    ]
    return CalibrationReport(
        class_names=names,
        counts=tuple(calibration.counts.tolist()),
        groups=None if calibration.groups is None else int(np.unique(calibration.groups).size),
        crossfitted=crossfitted,
        new=decided.figures(),
        old=None if old is None else old.figures(),
        change=None if old is None else decided.figures(old),
        previous=None if before is None else before.figures(),
        skill=skill,
        majority_accuracy=float(mix.max()),
        constant_cost=float(constant[cheapest]),
        constant_decision=decision,
        findings=tuple(findings),
    )


def compare_with_promoted(
    calibration: LabeledLogits, promoted: LabeledLogits, costs: Floats, names: tuple[str, str]
) -> tuple[Finding, ...]:
    """Findings against promoting a model: it is significantly worse than the promoted one, each on its own set.

    Cases are compared pair by pair where both sets have the same labels and groups in the same order. The test is
    exact for equal cases, and valid for others: within a class, their pairing is then random. Decisions are those of
    least expected cost, as in `examine_calibration`.

    Args:
        calibration: the set of the model.
        promoted: the set of the promoted model.
        costs: of their task, shape (C, D), D = C or C + 1 (abstain).
        names: of the model, and of the promoted one.

    Raises:
        InvalidInputError: a shape does not fit.
    """
    matrix, mix = as_costs(costs, classes=calibration.classes), calibration.prevalence
    if not (calibration.counts.all() and promoted.counts.all()):
        return ()
    new = _CaseScores.of(calibration, crossfitted_output(calibration, matrix, mix), matrix, mix)
    old = _CaseScores.of(promoted, crossfitted_output(promoted, matrix, mix), matrix, mix)
    accuracy = old.mean(old.hit), new.mean(new.hit)
    cost = old.mean(old.cost), new.mean(new.cost)
    if _are_paired(calibration, promoted):
        difference = new.mean(old.hit - new.hit), new.mean(new.cost - old.cost)
    else:
        difference = accuracy[0] - accuracy[1], cost[1] - cost[0]
    return tuple(worse_than_promoted(accuracy, cost, difference, new.cost_unit, names))


def _data_findings(calibration: LabeledLogits, names: tuple[str, ...], *, crossfitted: bool) -> list[Finding]:
    """Findings about the calibration set itself."""
    exchanges = find_exchanged_labels(calibration)
    return [
        *few_cases(calibration.counts, independent_cases(calibration), names),
        *sigmoid_outputs(calibration.logits),
        *(exchanged_classes(exchanges, names) or noisy_labels(find_label_noise(calibration))),
        *([] if crossfitted else [not_crossfitted(grouped=calibration.groups is not None)]),
    ]


def _findings_since(before: "_CaseScores", new: "_CaseScores") -> list[Finding]:
    """Findings where the new head is worse than that of the previous calibration set."""
    accuracy = before.mean(before.hit), new.mean(new.hit)
    cost = before.mean(before.cost), new.mean(new.cost)
    return worse_than_previous(accuracy, cost, new.cost_unit)


def _are_paired(first: LabeledLogits, second: LabeledLogits) -> bool:
    if not np.array_equal(first.labels, second.labels):
        return False
    if first.groups is None or second.groups is None:
        return first.groups is second.groups
    members = [
        np.unique(data.groups, return_inverse=True)[1] for data in (first, second) if data.groups is not None
    ]
    return np.array_equal(members[0], members[1])


@dataclass(frozen=True)
class _CaseScores:
    """Scores of one head on each case of a labelled set."""

    data: LabeledLogits
    costs: Floats
    class_mix: Floats
    hit: Floats
    """shape (N,), 1 where the most probable class is the true one"""
    cost: Floats
    gap: Floats
    """shape (N,), probability of the most probable class less `hit`"""
    brier: Floats
    log_loss: Floats
    """shape (N,)"""

    @classmethod
    def of(cls, data: LabeledLogits, output: HeadOutput, costs: Floats, class_mix: Floats) -> "_CaseScores":
        labels, probabilities = data.labels, output.probabilities
        top: Integers = probabilities.argmax(axis=1)
        hit = (top == labels).astype(np.float64)
        rows = np.arange(data.samples)
        own = probabilities[rows, labels]
        brier = (probabilities**2).sum(axis=1) - 2 * own + 1
        log_loss = -np.log(np.maximum(own, _SMALLEST))
        confidence = probabilities.max(axis=1)
        return cls(
            data, costs, class_mix, hit, costs[labels, output.decisions], confidence - hit, brier, log_loss
        )

    @property
    def cost_unit(self) -> float:
        """Cost of the cheapest constant decision, less the smallest possible one."""
        constant = constant_costs(self.costs, self.class_mix).min()
        return float(constant - self.class_mix @ self.costs.min(axis=1))

    def mean(self, values: Floats) -> ClassMixMean:
        """Mean of one number per case, under the class mix."""
        return ClassMixMean.of(values, self.data, self.class_mix)

    def figures(self, less: "_CaseScores | None" = None) -> HeadFigures:
        """Figures of this head, or their differences from another head on the same cases."""
        low, high = float(self.costs.min()), float(self.costs.max())
        if less is None:
            return HeadFigures(
                self.mean(self.hit).share_figure(),
                self.mean(self.cost).figure(low, high),
                self.mean(self.gap).figure(-1.0, 1.0),
                self.mean(self.brier).figure(0.0, 2.0),
            )
        return HeadFigures(
            self.mean(self.hit - less.hit).figure(-1.0, 1.0),
            self.mean(self.cost - less.cost).figure(low - high, high - low),
            self.mean(self.gap - less.gap).figure(-2.0, 2.0),
            self.mean(self.brier - less.brier).figure(-2.0, 2.0),
        )


def _skill(data: LabeledLogits, new: _CaseScores) -> Figure:
    """1 - log loss of the head / log loss of the prevalence alone."""
    prior = -np.log(data.prevalence)
    unit = float(data.prevalence @ prior)
    if unit <= 0:
        return Figure(0.0, 0.0, 0.0)
    saved = new.mean((prior[data.labels] - new.log_loss) / unit)
    reach = saved.reach()
    return Figure(saved.value, saved.value - reach, saved.value + reach)
