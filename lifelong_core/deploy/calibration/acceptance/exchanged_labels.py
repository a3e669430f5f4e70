"""Detection of labels that fit other classes better than their own, as after two folders were exchanged."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.deploy.calibration.acceptance.class_mix_mean import ClassMixMean
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Floats, Integers, centre_rows
from lifelong_core.values.scientific import best_assignment, t_probability

LEVEL = 0.001
"""Probability, over all classes together, that chance alone makes labels look exchanged."""

CLEAR_GAIN = 0.1
"""Smallest rise of the accuracy by the exchange: a long circle is chosen from very many permutations, so chance alone
gains a little."""


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
