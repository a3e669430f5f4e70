"""Eqs. 1-7 of Li et al. 2022 for segmentation as they are printed: loops over cases, all pixels in memory."""

import numpy as np
from scipy import optimize

from lifelong_core.deploy.performance.segmentation import SegmentationCase
from lifelong_core.deploy.performance.segmentation.sums import (
    LARGEST_LOG_TEMPERATURE,
    threshold_log_odds,
)


def softmax(logits):
    raised = np.exp(logits - logits.max(axis=0))
    return raised / raised.sum(axis=0)


def flat(case: SegmentationCase):
    """Logits (C, n) in float64, labels (n,), predictions (n,)."""
    logits = case.scores.reshape(case.classes, -1).astype(np.float64)
    return logits, None if case.labels is None else case.labels.ravel(), logits.argmax(axis=0)


def soft_dice(cases, calibrated, j):
    """Eq. 7; `calibrated` gives p-hat (C, n) for logits (C, n)."""
    found = []
    for case in cases:
        logits, _, predicted = flat(case)
        p = calibrated(logits, predicted)
        mine = predicted == j
        found.append(2 * p[j][mine].sum() / (mine.sum() + p[j].sum()))
    return np.mean(found)


def dice(cases, j):
    found = []
    for case in cases:
        _, labels, predicted = flat(case)
        found.append(
            2 * ((predicted == j) & (labels == j)).sum() / ((predicted == j).sum() + (labels == j).sum())
        )
    return np.mean(found)


def tempered(temperatures):
    return lambda logits, predicted: softmax(logits / np.asarray(temperatures)[predicted])


def less_offset(d):
    def calibrated(logits, predicted):
        p = softmax(logits)
        mine = np.arange(len(logits))[:, np.newaxis] == predicted
        return np.where(mine, p - d, p + d / (len(logits) - 1))

    return calibrated


def above(thresholds, scaling):
    """Thresholds are log odds: log p / (1 - p) exceeds them where p exceeds theirs."""

    def calibrated(logits, predicted):
        p = softmax(logits / np.asarray(scaling)[predicted])
        with np.errstate(divide="ignore"):
            log_odds = np.stack([np.log(p[j] / np.delete(p, j, axis=0).sum(axis=0)) for j in range(len(p))])
        return (log_odds > np.asarray(thresholds)[predicted]).astype(float)

    return calibrated


def mean_confidence(cases, calibrated, only=None):
    """Mean of the calibrated probability of the predicted class, and accuracy; over all pixels, or those of a class."""
    confidence, hits = [], []
    for case in cases:
        logits, labels, predicted = flat(case)
        p = calibrated(logits, predicted)
        keep = slice(None) if only is None else predicted == only
        confidence.append(p[predicted, np.arange(predicted.size)][keep])
        hits.append((predicted == labels)[keep])
    return np.concatenate(confidence).mean(), np.concatenate(hits).mean()


def best_temperature(gap):
    """argmin |gap(T)| of a falling gap."""
    limit = LARGEST_LOG_TEMPERATURE
    ends = gap(np.exp(-limit)), gap(np.exp(limit))
    if ends[0] * ends[1] > 0:
        return float(np.exp(-limit if abs(ends[0]) <= abs(ends[1]) else limit))
    return float(np.exp(optimize.bisect(lambda log: gap(np.exp(log)), -limit, limit, xtol=1e-10)))


def best_threshold(gap, temperature, classes):
    """argmin |gap(t)| by trying thresholds until all are exceeded; of equal ones the last above, else the first."""
    grid = [*threshold_log_odds(classes, temperature), np.inf]
    gaps = np.array([gap(t) for t in grid])
    last = np.flatnonzero(gaps >= 0).max(initial=0)
    following = min(last + 1, gaps.size - 1)
    return grid[last if abs(gaps[last]) <= abs(gaps[following]) else following]


def fitted(method, cases):
    """The calibrated probabilities of a method that is fitted to the cases."""
    classes = cases[0].classes
    if method == "AC":
        return tempered(np.ones(classes))
    if method == "DoC":
        confidence, accuracy = mean_confidence(cases, tempered(np.ones(classes)))
        return less_offset(confidence - accuracy)
    if not method.startswith("CS-"):
        temperature = best_temperature(
            lambda t: np.subtract(*mean_confidence(cases, tempered(np.full(classes, t))))
        )
        if method == "TS":
            return tempered(np.full(classes, temperature))
        scaling = np.full(classes, temperature if method == "TS-ATC" else 1.0)
        threshold = best_threshold(
            lambda t: np.subtract(*mean_confidence(cases, above(np.full(classes, t), scaling))),
            scaling[0],
            classes,
        )
        return above(np.full(classes, threshold), scaling)
    if method == "CS-TS":
        return tempered(class_temperatures(cases))
    scaling = class_temperatures(cases) if method == "CS-TS-ATC" else np.ones(classes)
    return above(class_thresholds(cases, scaling), scaling)


def class_temperatures(cases):
    """Two classes: the background by accuracy, then the foreground by Dice."""
    found = np.ones(2)
    found[0] = best_temperature(lambda t: np.subtract(*mean_confidence(cases, tempered([t, 1.0]), only=0)))
    found[1] = best_temperature(lambda t: soft_dice(cases, tempered([found[0], t]), 1) - dice(cases, 1))
    return found


def class_thresholds(cases, scaling):
    found = np.zeros(2)
    found[0] = best_threshold(
        lambda t: np.subtract(*mean_confidence(cases, above([t, 0.0], scaling), only=0)), scaling[0], 2
    )
    found[1] = best_threshold(
        lambda t: soft_dice(cases, above([found[0], t], scaling), 1) - dice(cases, 1), scaling[1], 2
    )
    return found


def estimate(method, calibration, maps, j):
    """Estimated Dice of class j."""
    if method == "CS-DoC":
        plain = tempered(np.ones(calibration[0].classes))
        return dice(calibration, j) - soft_dice(calibration, plain, j) + soft_dice(maps, plain, j)
    return soft_dice(maps, fitted(method, calibration), j)
