"""A population with known class densities, so that expected results can be computed."""

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits


class GaussianPopulation:
    """Logits of class k are normal around `separation` times the k-th unit vector, with unit variance.

    Then separation * logits + log prevalence is the exact log posterior, up to a constant per row.
    """

    def __init__(self, classes: int, separation: float = 2.0) -> None:
        self.classes = classes
        self.separation = separation

    def logits(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(size=(labels.size, self.classes))
        return (self.separation * np.eye(self.classes)[labels] + noise).astype(np.float32)

    def draw(self, counts, rng: np.random.Generator) -> LabeledLogits:
        """Exactly so many samples of each class, in random order."""
        labels = rng.permutation(np.repeat(np.arange(self.classes), counts))
        return LabeledLogits(self.logits(labels, rng), labels)

    def window(self, prevalence, size: int, rng: np.random.Generator) -> np.ndarray:
        """A random sample of a population with this prevalence."""
        return self.logits(rng.choice(self.classes, size=size, p=prevalence), rng)

    def posterior(self, logits: np.ndarray, prevalence: np.ndarray) -> np.ndarray:
        scores = self.separation * logits.astype(float) + np.log(prevalence)
        likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
        return likelihood / likelihood.sum(axis=1, keepdims=True)


@pytest.fixture(scope="session")
def population():
    return GaussianPopulation
