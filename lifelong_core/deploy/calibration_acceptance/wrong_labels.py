"""Wrong labels of a calibration set: exchanged classes, and random label noise."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.deploy.calibration.affine import MAXIMUM_SCALED_INVERSE, MINIMUM_SCALED_INVERSE
from lifelong_core.deploy.calibration.cross_entropy import chunks, typical_size
from lifelong_core.deploy.calibration_acceptance.class_mix_mean import ClassMixMean
from lifelong_core.deploy.labeled import LabeledLogits, independent_cases
from lifelong_core.deploy.numerics.newton import minimize_large
from lifelong_core.values.arrays import Floats, Integers, centre_rows, softmax
from lifelong_core.values.scientific import best_assignment, t_probability

LEVEL = 0.001
"""Probability, over all classes together, that chance alone makes labels look exchanged."""

CLEAR_GAIN = 0.1
"""Smallest rise of the accuracy by the exchange: a long circle is chosen from very many permutations, so chance alone
gains a little."""

SMALLEST_RATE = 0.02
"""A smaller share is not reported: a few gross errors of a network look alike."""
SIGNIFICANT = 6.63
"""Least value of twice the gain in log likelihood, in independent cases: p < 0.005, the parameter being at its bound
without noise (Self and Liang 1987). On four real sets without known errors (2 to 100 classes, draws of 200 to 3,000
cases) shares of 0.02 or more gained at most 2.4."""
_LARGEST_RATE = 0.9
"""Bound of the share, in units of that at which labels tell nothing."""
_STARTS = (0.02, 0.2)
_RIDGE = 1.0
"""Precision of a prior on the biases, in samples: a rare class has no endless bias."""
_PRECISION = 1e-9


@dataclass(frozen=True)
class ExchangedLabels:
    """Classes whose labels look exchanged in a circle."""

    classes: tuple[int, ...]
    """cases labelled with one class look like the next class; those of the last class look like the first"""
    accuracy: float
    """share of their cases whose label has the largest logit among these classes; each logit less its mean over the
    classes"""
    exchanged_accuracy: float
    """the same with the labels exchanged"""


def find_exchanged_labels(data: LabeledLogits) -> tuple[ExchangedLabels, ...]:
    """Circles of classes whose labels look exchanged; none where the labels fit as well as any permutation.

    Each class is assigned a column of logits: the permutation with the largest sum of the classes' mean centred logits.
    The bias of a class (trained on other prevalences) adds the same to every permutation, so it is no sign of an
    exchange. A circle is reported where its gain is significant (one-sided t test, Bonferroni over the pairs of
    classes) and the exchange makes clearly more of its cases right.
    """
    if not data.counts.all():
        return ()
    logits = centre_rows(data.logits)
    sums = np.zeros((data.classes, data.classes))
    np.add.at(sums, data.labels, logits)
    means = sums / data.counts[:, np.newaxis]
    assigned = best_assignment(means)
    pairs = data.classes * (data.classes - 1) / 2
    logits = logits - means.mean(axis=0)
    found = [_exchange(data, logits, assigned, circle, LEVEL / pairs) for circle in _circles(assigned)]
    return tuple(item for item in found if item is not None)


def _circles(permutation: Integers) -> list[tuple[int, ...]]:
    """The circles of two and more classes."""
    seen: set[int] = set()
    found: list[tuple[int, ...]] = []
    for start in range(permutation.size):
        circle: list[int] = []
        k = start
        while k not in seen:
            seen.add(k)
            circle.append(k)
            k = int(permutation[k])
        if len(circle) > 1:
            found.append(tuple(circle))
    return found


def _exchange(
    data: LabeledLogits, logits: Floats, assigned: Integers, circle: tuple[int, ...], level: float
) -> ExchangedLabels | None:
    members = np.array(circle)
    rows = np.flatnonzero(np.isin(data.labels, members))
    cases, labels = data.select(rows), data.labels[rows]
    gains = logits[rows, assigned[labels]] - logits[rows, labels]
    class_mix = np.isin(np.arange(data.classes), members) / members.size
    gain = ClassMixMean.of(gains, cases, class_mix)
    error = float(np.sqrt(gain.variance))
    if gain.value <= 0 or (error > 0 and t_probability(gain.freedom, -gain.value / error) > level):
        return None
    largest = members[logits[np.ix_(rows, members)].argmax(axis=1)]
    accuracy = float((largest == labels).mean())
    exchanged = float((largest == assigned[labels]).mean())
    return ExchangedLabels(circle, accuracy, exchanged) if exchanged >= accuracy + CLEAR_GAIN else None


@dataclass(frozen=True)
class LabelNoise:
    """Labels that look wrong at random."""

    rate: float
    """share of wrong labels, 0 to 1"""
    gain: float
    """twice the gain in log likelihood against no wrong label, in independent cases"""


@dataclass(frozen=True)
class NoisyAffineProblem:
    """Mean cross entropy of (1 - e) p + e / (C - 1) (1 - p), with p = softmax(rows * inverse + bias) of the label.

    The parameters are inverse temperature, biases (C,), and the share e of wrong labels, which are of any other class
    alike. Over-confidence alone cannot pass for noise, because the temperature is fitted with it: it makes all outputs
    less certain, while noise leaves the same share of surprises at the most certain ones.
    """

    rows: Floats
    """centred logits of size one, (N, C)"""
    labels: Integers
    """shape (N,)"""

    def loss_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Loss and gradient, (C + 2,)."""
        samples, classes = self.rows.shape
        bias = parameters[1:-1]
        value, gradient = 0.0, np.zeros_like(parameters)
        for part in chunks(samples, classes):
            rows, labels = self.rows[part], self.labels[part]
            probabilities, own, likelihood = self._likelihoods(parameters, part)
            # Posterior probability that the label is right, up to the chance to hit it by error.
            right = (1 - parameters[-1] * classes / (classes - 1)) * own / likelihood
            residuals = probabilities * right[:, np.newaxis]
            residuals[np.arange(labels.size), labels] -= right
            value -= float(np.log(likelihood).sum())
            gradient[0] += np.vdot(residuals, rows)
            gradient[1:-1] += residuals.sum(axis=0)
            gradient[-1] += float(((own * classes - 1) / ((classes - 1) * likelihood)).sum())
        gradient[1:-1] += _RIDGE * bias
        return (value + _RIDGE * float(bias @ bias) / 2) / samples, gradient / samples

    def curvature(self, parameters: Floats) -> Floats:
        """About the diagonal of the Hessian, (C + 2,)."""
        samples, classes = self.rows.shape
        result = np.zeros_like(parameters)
        for part in chunks(samples, classes):
            probabilities, own, likelihood = self._likelihoods(parameters, part)
            mean = (probabilities * self.rows[part]).sum(axis=1, keepdims=True)
            result[0] += np.vdot(probabilities, (self.rows[part] - mean) ** 2)
            result[1:-1] += (probabilities * (1 - probabilities)).sum(axis=0)
            result[-1] += float((((own * classes - 1) / ((classes - 1) * likelihood)) ** 2).sum())
        result[1:-1] += _RIDGE
        return result / samples

    def _likelihoods(self, parameters: Floats, part: slice) -> tuple[Floats, Floats, Floats]:
        labels, classes = self.labels[part], self.rows.shape[1]
        probabilities = softmax(self.rows[part] * parameters[0] + parameters[1:-1])
        own = probabilities[np.arange(labels.size), labels]
        likelihood = own + parameters[-1] * (1 - own * classes) / (classes - 1)
        return probabilities, own, np.maximum(likelihood, np.finfo(np.float64).tiny)


def estimate_label_noise(data: LabeledLogits) -> LabelNoise:
    """Estimate the share of wrong labels by maximum likelihood, with temperature and biases.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.integers(3, size=1500)
        >>> logits = 4 * np.eye(3)[labels] + rng.normal(size=(1500, 3))
        >>> wrong = rng.random(1500) < 0.1
        >>> noise = estimate_label_noise(LabeledLogits(logits, (labels + wrong * rng.integers(1, 3, 1500)) % 3))
        >>> round(float(wrong.mean()), 2), round(noise.rate, 2), noise.gain > 100
        (0.11, 0.11, True)
    """
    rows = centre_rows(data.logits)
    problem = NoisyAffineProblem(rows / typical_size(rows), data.labels)
    free = np.full(data.classes, np.inf)

    def fit(start: float, largest: float) -> Floats:
        return minimize_large(
            problem,
            np.concatenate([[1.0], np.zeros(data.classes), [start]]),
            np.concatenate([[MINIMUM_SCALED_INVERSE], -free, [0.0]]),
            np.concatenate([[MAXIMUM_SCALED_INVERSE], free, [largest]]),
            _PRECISION,
        )

    largest = _LARGEST_RATE * (data.classes - 1) / data.classes
    without = problem.loss_and_gradient(fit(0.0, 0.0))[0]
    # The loss has more than one minimum: noise, and less certain outputs.
    fits = [fit(start, largest) for start in _STARTS]
    losses = [problem.loss_and_gradient(one)[0] for one in fits]
    best = int(np.argmin(losses))
    cases = float(independent_cases(data).sum())
    return LabelNoise(float(fits[best][-1]), 2 * cases * max(without - losses[best], 0.0))


def find_label_noise(data: LabeledLogits) -> LabelNoise | None:
    """Wrong labels, where the estimated share is of note and no chance."""
    noise = estimate_label_noise(data)
    return noise if noise.rate >= SMALLEST_RATE and noise.gain >= SIGNIFICANT else None
