"""Affine scores of logits, and labels as one-hot rows."""

import numpy as np

from lifelong_core.values.arrays import Floats, Logits, centre_rows


def affine_scores(logits: Logits, temperature: float | Floats, bias: Floats) -> Floats:
    """Centred logits divided by the temperature, plus the bias, shape (N, C), float64.

    Centring matters only where the temperature differs between classes: it makes the result ignore a row's
    constant.
    """
    return centre_rows(logits) / temperature + bias


def one_hot(labels: np.ndarray, classes: int) -> Floats:
    """One-hot rows of labels, shape (N, C): 1 in the column of the row's label, else 0."""
    return (labels[:, np.newaxis] == np.arange(classes)).astype(np.float64)
