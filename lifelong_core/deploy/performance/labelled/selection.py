"""Do the labelled samples of a population differ from the unlabelled ones?"""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from lifelong_core.deploy.documents import FlatDocument


@dataclass(frozen=True)
class SelectionTest(FlatDocument):
    """Test of "labelled and unlabelled logits have the same distribution"."""

    statistic: float
    p_value: float
    level: float
    rejected: bool
    labelled: int
    unlabelled: int
    text: str
    """one sentence"""


def selection_test(
    labelled: ArrayLike,
    unlabelled: ArrayLike,
    *,
    labelled_groups: ArrayLike | None = None,
    unlabelled_groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.01,
) -> SelectionTest:
    """Test whether labelled and unlabelled logits of one population differ.

    Args:
        labelled: shape (m, C), logits of samples with label.
        unlabelled: shape (n, C), logits of samples without label, or of all samples, labelled ones included (the test
            is then conservative).
        labelled_groups: shape (m,); None: all independent.
        unlabelled_groups: shape (n,); a group may have samples in both parts.
        weights: shape (m,), inverse propensities of the labelled samples; None: equal.
        level: largest probability of a rejection where the two do not differ.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    raise NotImplementedError
