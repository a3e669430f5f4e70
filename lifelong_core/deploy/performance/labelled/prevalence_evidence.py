"""Prevalence from unlabelled samples and from labels, combined."""

from numpy.typing import ArrayLike

from lifelong_core.deploy.quantification.estimate import PrevalenceEstimate


def with_labels(
    estimate: PrevalenceEstimate,
    labels: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.01,
) -> PrevalenceEstimate:
    """The estimate with the class shares of labelled samples of the same population as further evidence.

    Both are weighted by their inverse covariances. Without labels the estimate is returned unchanged; with very many it
    becomes the class shares of the labels.

    Args:
        estimate: from unlabelled samples.
        labels: shape (m,), true classes of labelled samples, m >= 0.
        propensities: shape (m,), probability with which each sample was chosen for labelling; None: unknown, which is
            fair only where the choice does not depend on the class (a caution says so).
        groups: shape (m,), samples of one group may depend on each other; None: all independent.
        level: of the test whether the two agree.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    raise NotImplementedError
