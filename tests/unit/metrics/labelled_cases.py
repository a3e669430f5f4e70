"""Labels with probabilities, for properties of metrics of scores."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def labelled(draw, min_size=1, max_size=20, min_classes=2, max_classes=4):
    """Labels (N,) and probabilities (N, C), many of them equal, some 0 or 1."""
    classes = draw(st.integers(min_classes, max_classes))
    size = draw(st.integers(min_size, max_size))
    weights = st.lists(st.integers(0, 4), min_size=classes, max_size=classes).filter(any)
    rows = np.array(draw(st.lists(weights, min_size=size, max_size=size)), dtype=float)
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=size, max_size=size))
    return np.array(labels), rows / rows.sum(axis=1, keepdims=True)


def simulated(size, *, classes=3, sharpness=1.0, seed=0):
    """A calibrated model's probabilities and labels; a sharpness above 1 makes it over-confident."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(classes), size=size)
    labels = (rng.random(size)[:, np.newaxis] > truth.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    sharpened = truth**sharpness
    return labels, sharpened / sharpened.sum(axis=1, keepdims=True)
