"""Linearisation of maximum likelihood mixture weights: influence of each sample and each density."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.numerics.simplex import tangent_basis
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True)
class MixtureLinearisation:
    """Linearised solution of mean ratio = 1 on the simplex, with ratio_ik = density_ik / sum_l p_l density_il.

    Means are taken over the window and the pseudo-samples of the calibration set
    (`simplex.PSEUDO_SAMPLES`).
    """

    prevalence: Floats
    """shape (C,), positive: point of the linearisation"""
    ratios: Floats
    """shape (N + M, C), window samples first, then calibration samples"""
    weights: Floats
    """shape (N + M,), sums to 1"""
    products: Floats
    """shape (C, C), symmetric: weighted means of the products of two classes' ratios"""
    sensitivity: Floats
    """shape (C, C), symmetric: change of the estimate per change of the mean ratios"""

    @classmethod
    def at(cls, prevalence: Floats, densities: Floats, weights: Floats) -> Self:
        """Linearise at a positive prevalence, given densities and weights of window and calibration samples."""
        ratios = densities / (densities @ prevalence)[:, np.newaxis]
        weights = weights / weights.sum()
        basis = tangent_basis(prevalence.size)
        # A matrix times its own transpose takes half the time of another product.
        scaled = ratios * np.sqrt(weights)[:, np.newaxis]
        products = scaled.T @ scaled
        information = basis.T @ products @ basis
        sensitivity = basis @ np.linalg.pinv(information, hermitian=True, rcond=1e-14) @ basis.T
        return cls(prevalence, ratios, weights, products, sensitivity)

    def influences(self) -> Floats:
        """First-order effect of each sample on the estimate, shape (N + M, C)."""
        return self.ratios @ self.sensitivity

    def response(self, direction: Floats) -> Floats:
        """Change of the estimate, (C,), for a change of the log densities in this direction, (N + M, C)."""
        posteriors = self.ratios * self.prevalence
        change = self.ratios * (direction - (posteriors * direction).sum(axis=1, keepdims=True))
        return self.sensitivity @ (self.weights @ change)

    def responses(self) -> Floats:
        """Change of the estimate, (C,), per change of the log density of class m at all samples: column m."""
        change = np.diag(self.weights @ self.ratios) - self.products * self.prevalence
        return self.sensitivity @ change
