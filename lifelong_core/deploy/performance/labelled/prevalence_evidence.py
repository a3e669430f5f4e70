"""Prevalence from unlabelled samples and from labels, combined."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.deploy.numerics.simplex import simplex_least_squares, tangent_basis
from lifelong_core.deploy.performance.labelled.estimate import (
    as_inclusion_probabilities,
    clustered_covariance,
    effective_number,
)
from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate, t_interval
from lifelong_core.values.arrays import Floats, as_groups, as_labels
from lifelong_core.values.scientific import f_tail

UNKNOWN_SELECTION = (
    "The estimate contains labels whose selection is unknown; it is right only if samples of all classes were equally "
    "likely to be labelled."
)
CONTRADICTION = "Labels and unlabelled samples give different prevalences (p = {p_value:.1g}); "
LABELS_ONLY = "the estimate is that of the labels, because their selection is known."
NO_LABELS = "the labels are left out, because their selection is unknown and may depend on the class."


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
    becomes the class shares of the labels. Where the labelled samples are a part of the window, the two are taken as
    independent, which is approximately right as long as they are a small part.

    Where the two contradict each other, they are not combined, and a caution says so: labels with propensities replace
    the estimate, because they need no assumption on the shift; labels without are left out, because they may have been
    selected by class.

    Args:
        estimate: from unlabelled samples.
        labels: shape (m,), true classes of labelled samples, m >= 0.
        propensities: shape (m,), in (0, 1]: probability with which each sample was chosen for labelling; None: unknown,
            which is fair only where the choice does not depend on the class; a caution says so.
        groups: shape (m,), samples of one group may depend on each other; None: all independent.
        level: of the test whether the two contradict each other.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    classes = estimate.prevalence.size
    true = as_labels(labels, classes=classes)
    accepted = as_level(level, "level")
    weights = np.ones(true.size)
    if propensities is not None:
        weights = 1 / as_inclusion_probabilities(propensities, true.size)
    keys = as_groups(groups, samples=true.size)
    if true.size == 0:
        return estimate
    cautions: tuple[str, ...] = () if propensities is not None else (UNKNOWN_SELECTION,)
    number = effective_number(weights, keys)
    shares, covariance = _class_shares(one_hot(true, classes), weights, keys, number, estimate.prevalence)
    freedom = np.full(classes, max(number - 1, 1.0))
    known = bool((estimate.degrees_of_freedom > 0).all())
    found, spread = shares, covariance
    if known:
        combined, combined_spread, p_value = _combine(estimate, shares, covariance, freedom)
        if p_value >= accepted:
            found, spread = combined, combined_spread
            freedom = _degrees(estimate, covariance, freedom)
        else:
            text = CONTRADICTION.format(p_value=p_value)
            if propensities is None:
                return replace(estimate, cautions=(*estimate.cautions, text + NO_LABELS))
            cautions = (text + LABELS_ONLY,)
    prevalence = simplex_least_squares(np.eye(classes), found)
    low, high = t_interval(prevalence, spread, freedom, estimate.confidence)
    return replace(
        estimate,
        prevalence=prevalence,
        low=low,
        high=high,
        covariance=spread,
        degrees_of_freedom=freedom,
        effective_n=estimate.effective_n + number,
        method=f"{estimate.method} + labels",
        cautions=(*estimate.cautions, *cautions),
    )


def _class_shares(
    classes: Floats, weights: Floats, groups: np.ndarray | None, number: float, prevalence: Floats
) -> tuple[Floats, Floats]:
    """Weighted class shares (C,) and their covariance (C, C).

    Classes that the labels lack have a variance too: that of one more label of the estimated prevalence.
    """
    total = weights.sum()
    shares = weights @ classes / total
    influences = (classes - shares) * (weights / total)[:, np.newaxis]
    unseen = (np.diag(prevalence) - np.outer(prevalence, prevalence)) / number**2
    return shares, clustered_covariance(influences, groups) + unseen


def _combine(
    estimate: PrevalenceEstimate, shares: Floats, covariance: Floats, freedom: Floats
) -> tuple[Floats, Floats, float]:
    """Combined prevalence, its covariance and the p-value of "the two agree"."""
    basis = tangent_basis(shares.size)
    own, other = basis.T @ estimate.covariance @ basis, basis.T @ covariance @ basis
    gain = own @ np.linalg.pinv(own + other, hermitian=True)
    step = basis.T @ (shares - estimate.prevalence)
    found = estimate.prevalence + basis @ (gain @ step)
    # The form that stays positive whatever the rounding errors (Joseph).
    rest = np.eye(step.size) - gain
    spread = basis @ (rest @ own @ rest.T + gain @ other @ gain.T) @ basis.T
    statistic = float(step @ np.linalg.pinv(own + other, hermitian=True) @ step)
    least = float(min(freedom.min(), estimate.degrees_of_freedom.min()))
    surplus = max(least - step.size + 1, 1.0)
    return found, spread, f_tail(step.size, surplus, statistic * surplus / (max(least, 1.0) * step.size))


def _degrees(estimate: PrevalenceEstimate, covariance: Floats, freedom: Floats) -> Floats:
    """Degrees of freedom of the combination, by Welch and Satterthwaite with the weights of each class alone."""
    own, other = np.diag(estimate.covariance), np.diag(covariance)
    # The weight of each part is the other one's variance, so that each adds own^2 other or other^2 own.
    parts = (own * other**2) ** 2 / estimate.degrees_of_freedom + (other * own**2) ** 2 / freedom
    total = (own * other**2 + other * own**2) ** 2
    return np.divide(total, parts, out=np.minimum(estimate.degrees_of_freedom, freedom), where=parts > 0)
