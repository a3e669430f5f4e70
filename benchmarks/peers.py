"""QuaPy's quantifiers on logits, for a comparison in one process."""

import importlib
import warnings
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator

from lifelong_core.deploy import LabeledLogits

PEERS = {
    "CC": "CC",
    "PCC": "PCC",
    "ACC": "ACC",
    "PACC": "PACC",
    "BBSE": "ACC",
    "EMQ": "EMQ",
    "HDy": "DMy",
    "KDEyML": "KDEyML",
    "KDEyHD": "KDEyHD",
    "KDEyCS": "KDEyCS",
    "MLLS": "EMQ",
    "auto": "KDEyHD",
}
"""Our name: QuaPy's class with its default settings. DMy is its multiclass HDy; MLLS is set against EMQ on raw softmax
and auto against the thesis' recommendation, because QuaPy has neither."""
SLOW = frozenset({"ACC", "PACC", "DMy", "KDEyML", "KDEyHD", "KDEyCS"})
"""Take seconds to minutes per window with 100 classes."""
_WITHOUT_SPLIT = frozenset({"CC"})


class Softmax(BaseEstimator):
    """A trained classifier whose outputs are the logits, as QuaPy wants one."""

    def __init__(self, classes: int = 2) -> None:
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, *_: Any) -> "Softmax":
        """It is trained already."""
        return self

    def predict_proba(self, logits: np.ndarray) -> np.ndarray:
        """Softmax of the logits."""
        return softmax(np.asarray(logits, dtype=float), axis=1)

    def predict(self, logits: np.ndarray) -> np.ndarray:
        """The class with the largest logit."""
        return np.asarray(logits).argmax(axis=1)


def fit_peer(name: str, calibration: LabeledLogits) -> Any:
    """QuaPy's quantifier of this name, fitted on the calibration set; `predict(logits)` gives the prevalence."""
    # QuaPy and what it imports warn about optional parts that are not installed; EMQ about stopping early.
    warnings.simplefilter("ignore")
    methods = importlib.import_module("quapy.method.aggregative")
    settings = {} if name in _WITHOUT_SPLIT else {"val_split": None}
    blank = getattr(methods, name)(Softmax(calibration.classes), fit_classifier=False, **settings)
    return blank.fit(calibration.logits, calibration.labels)
