"""Softmax of affinely scaled logits, the one transformation that everything in this package shares."""

import numpy as np

from lifelong_core.arrays import Floats, Logits, centre_rows


def softmax(scores: Floats) -> Floats:
    """exp(scores) normalised per row, shape (N, C); safe for scores of any size.

    A row's result does not depend on the other rows, to the last bit.
    """
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def affine_scores(logits: Logits, temperature: float | Floats, bias: Floats) -> Floats:
    """Centred logits divided by the temperature, plus the bias, shape (N, C), float64.

    Centring matters only where the temperature differs between classes: it makes the result ignore a row's
    constant.
    """
    return centre_rows(logits) / temperature + bias


def one_hot(labels: np.ndarray, classes: int) -> Floats:
    """1 where the column is the row's label, else 0, shape (N, C)."""
    return (labels[:, np.newaxis] == np.arange(classes)).astype(np.float64)
