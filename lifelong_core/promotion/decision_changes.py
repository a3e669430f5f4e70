"""Decisions that change with the new model, their costs, and the test of whether both models err equally often."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pydantic import Field

from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.documents import Frozen
from lifelong_core.values.scientific import normal_probability

MOST_CASES = 1000
"""changed cases that are listed; of more, half of them with the largest rise of cost, and half with the largest fall"""

MOST_KINDS = 50
"""kinds of changes that are listed, the most frequent first"""

LONGEST_NAME = 200


MOST_EXACT = 20_000
"""largest sum of sizes of differences that is convolved exactly; beyond it, the normal limit is as good"""


class ClassChanges(Frozen):
    """Changed decisions among the cases of one true class."""

    class_index: int
    samples: int
    corrected: int = Field(description="Wrong by the current model, right by the new one.")
    broken: int = Field(description="Right by the current model, wrong by the new one.")
    other: int = Field(description="Wrong by both, in different ways.")


class KindOfChange(Frozen):
    """Changes from one decision to another among the cases of one true class."""

    class_index: int
    current: int = Field(description="Decision of the current model; C: it abstains.")
    new: int = Field(description="Decision of the new model.")
    count: int
    cost_change: float = Field(
        description="Cost of the new decision less that of the current one, of one case."
    )


class ChangedCase(Frozen):
    """One case whose decision changes."""

    row: int = Field(description="Its index in the labelled set.")
    name: str | None = Field(description="Its name, such as its file; None: the set names none.")
    class_index: int = Field(description="Its true class.")
    current: int
    new: int
    current_confidence: float = Field(
        description="Probability of the decided class; of the likeliest, if it abstains."
    )
    new_confidence: float
    cost_change: float


class McNemar(Frozen):
    """Whether the two models err equally often on these cases."""

    corrected: int = Field(description="Cases that only the new model decides rightly.")
    broken: int = Field(description="Cases that only the current model decides rightly.")
    exact: float = Field(description="Two-sided p-value of McNemar's exact test.")
    mid_p: float = Field(description="Its mid-p version, which is less conservative.")
    groups: int | None = Field(
        description="Groups whose sums of differences were flipped together; None: single cases were."
    )


class DecisionChanges(Frozen):
    """Cases that the two models decide differently."""

    samples: int
    changed: int
    by_class: tuple[ClassChanges, ...]
    kinds: tuple[KindOfChange, ...] = Field(description=f"Most frequent first, at most {MOST_KINDS}.")
    mcnemar: McNemar
    cases: tuple[ChangedCase, ...] = Field(
        description=f"Largest rise of cost first; of more than {MOST_CASES}, those in the middle are left out."
    )

    @property
    def worse(self) -> list[ChangedCase]:
        """Listed cases whose cost rises, most first."""
        return [case for case in self.cases if case.cost_change > 0]

    @property
    def better(self) -> list[ChangedCase]:
        """Listed cases whose cost falls, most first."""
        return [case for case in reversed(self.cases) if case.cost_change < 0]

    @property
    def equal(self) -> list[ChangedCase]:
        """Listed cases whose cost stays."""
        return [case for case in self.cases if case.cost_change == 0]

    @classmethod
    def of(
        cls,
        labels: Integers,
        new: tuple[Integers, Floats],
        current: tuple[Integers, Floats],
        *,
        costs: Floats,
        unit: Integers,
        is_grouped: bool,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Compare the decisions of two models.

        Args:
            labels: shape (N,), true classes.
            new: decisions (N,) and probabilities (N, C) of the new model.
            current: likewise of the current one.
            costs: shape (C, D), of deciding j when i is true.
            unit: shape (N,), 0..U-1: which cases belong together.
            is_grouped: whether these are given groups, rather than single cases.
            names: N names of cases; None: there are none.
        """
        decided, before = new[0], current[0]
        return cls(
            samples=labels.size,
            changed=int((decided != before).sum()),
            by_class=_by_class(labels, decided, before, classes=costs.shape[0]),
            kinds=_kinds(labels, decided, before, costs),
            mcnemar=_mcnemar(labels, decided, before, unit, is_grouped=is_grouped),
            cases=tuple(_listed(_changed_cases(labels, new, current, costs=costs, names=names))),
        )


def _changed_cases(
    labels: Integers,
    new: tuple[Integers, Floats],
    current: tuple[Integers, Floats],
    *,
    costs: Floats,
    names: Sequence[str] | None,
) -> list[ChangedCase]:
    """All of them; of equal costs, the case of which the new model is surest is looked at first."""
    (decided, probabilities), (before, probabilities_before) = new, current
    change = costs[labels, decided] - costs[labels, before]
    rows: list[int] = np.flatnonzero(decided != before).tolist()
    cases = [
        ChangedCase(
            row=row,
            name=None if names is None else names[row][:LONGEST_NAME],
            class_index=int(labels[row]),
            current=int(before[row]),
            new=int(decided[row]),
            current_confidence=_confidence(probabilities_before[row], int(before[row])),
            new_confidence=_confidence(probabilities[row], int(decided[row])),
            cost_change=float(change[row]),
        )
        for row in rows
    ]
    return sorted(cases, key=lambda case: (-case.cost_change, -case.new_confidence, case.row))


def _listed(cases: list[ChangedCase]) -> list[ChangedCase]:
    if len(cases) <= MOST_CASES:
        return cases
    half = MOST_CASES // 2
    return [*cases[: MOST_CASES - half], *cases[len(cases) - half :]]


def _confidence(probabilities: Floats, decision: int) -> float:
    return float(probabilities[decision] if decision < probabilities.size else probabilities.max())


def _by_class(
    labels: Integers, new: Integers, current: Integers, *, classes: int
) -> tuple[ClassChanges, ...]:
    made: list[ClassChanges] = []
    for k in range(classes):
        own = labels == k
        was_right, is_right = current[own] == k, new[own] == k
        made.append(
            ClassChanges(
                class_index=k,
                samples=int(own.sum()),
                corrected=int((~was_right & is_right).sum()),
                broken=int((was_right & ~is_right).sum()),
                other=int((~was_right & ~is_right & (current[own] != new[own])).sum()),
            )
        )
    return tuple(made)


def _kinds(labels: Integers, new: Integers, current: Integers, costs: Floats) -> tuple[KindOfChange, ...]:
    is_changed = new != current
    triples = np.stack([labels, current, new], axis=1)[is_changed]
    found, counts = np.unique(triples, axis=0, return_counts=True)
    made = [
        KindOfChange(
            class_index=k,
            current=before,
            new=after,
            count=count,
            cost_change=float(costs[k, after] - costs[k, before]),
        )
        for (k, before, after), count in zip(found.tolist(), counts.tolist(), strict=True)
    ]
    made.sort(key=lambda kind: (-kind.count, -kind.cost_change, kind.class_index, kind.current, kind.new))
    return tuple(made[:MOST_KINDS])


def _mcnemar(
    labels: Integers, new: Integers, current: Integers, unit: Integers, *, is_grouped: bool
) -> McNemar:
    gain = (new == labels).astype(np.int64) - (current == labels)
    units = int(unit.max()) + 1
    test = sign_flip_test(np.bincount(unit, weights=gain, minlength=units).astype(np.int64))
    return McNemar(
        corrected=int((gain > 0).sum()),
        broken=int((gain < 0).sum()),
        exact=test.exact,
        mid_p=test.mid_p,
        groups=units if is_grouped else None,
    )


@dataclass(frozen=True)
class SignFlipTest:
    """Two-sided p-values of the null hypothesis that the difference of each unit is as likely as its negative."""

    exact: float
    """never rejects too often"""
    mid_p: float
    """half of the probability of the observed value is left out: less conservative (Lancaster, 1961)"""


def sign_flip_test(differences: Integers) -> SignFlipTest:
    """Test whether integer differences are symmetric around 0, by all 2^U ways to flip their signs.

    With one difference of -1, 0 or 1 for each case, this is McNemar's exact test (1947) and its mid-p version
    (Fagerland, Lydersen and Laake, 2013). With the sum of these over each group of dependent cases, it holds whatever
    the dependence within groups, as long as groups are independent.

    Args:
        differences: shape (U,), of each independent unit.

    Examples:
        >>> found = sign_flip_test(np.array([1] * 9 + [-1]))
        >>> round(found.exact, 6), round(found.mid_p, 6)
        (0.021484, 0.011719)
        >>> sign_flip_test(np.array([0, 0]))
        SignFlipTest(exact=1.0, mid_p=1.0)
    """
    sizes = np.abs(differences[differences != 0])
    if not sizes.size:
        return SignFlipTest(1.0, 1.0)
    observed, largest = abs(int(differences.sum())), int(sizes.sum())
    if largest > MOST_EXACT:
        return _normal(observed, float((sizes.astype(np.float64) ** 2).sum()))
    # The sum of the positive sizes after random flips; the total is twice this less `largest`.
    shares = _distribution(sizes)
    totals = np.abs(2 * np.arange(shares.size) - largest)
    beyond, at = float(shares[totals > observed].sum()), float(shares[totals == observed].sum())
    return SignFlipTest(min(1.0, beyond + at), min(1.0, beyond + at / 2))


def _distribution(sizes: Integers) -> Floats:
    """Probabilities of the sum of a random half of the sizes, shape (sum + 1,)."""
    shares = np.ones(1)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        own = np.zeros(size * count + 1)
        own[::size] = _binomial(int(count))
        shares = np.convolve(shares, own)
    return shares


def _binomial(count: int) -> Floats:
    """Probabilities of 0..count heads of fair coins."""
    steps = np.log(np.arange(1, count + 1))
    factorial = np.concatenate([[0.0], np.cumsum(steps)])
    logarithms = factorial[-1] - factorial - factorial[::-1] - count * np.log(2)
    shares = np.exp(logarithms)
    return shares / shares.sum()


def _normal(observed: int, variance: float) -> SignFlipTest:
    p = 2 * float(normal_probability(-observed / np.sqrt(variance)))
    return SignFlipTest(min(1.0, p), min(1.0, p))
