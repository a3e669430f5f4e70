import math

import numpy as np
import pytest

from lifelong_core.metrics import METRICS, compute_metrics

POOL = [acronym for acronym, card in METRICS.items() if card.is_in_pool]

SENTENCES = [
    ("AC", {"confusion_matrix": [[0, 0], [0, 0]]}, "there is no sample"),
    ("TPR", {"confusion_matrix": [[0, 0], [3, 7]]}, {0: "no reference sample of class 0"}),
    ("TNR", {"confusion_matrix": [[0, 0], [3, 7]]}, {1: "every reference sample is of class 1"}),
    ("BA", {"confusion_matrix": np.diag([1, 0, 0])}, "no reference sample of class 1, 2"),
    ("PPV", {"confusion_matrix": [[0, 10], [0, 90]]}, {0: "class 0 was never decided"}),
    ("NPV", {"confusion_matrix": [[0, 10], [0, 90]]}, {1: "class 1 was always decided"}),
    ("LR+", {"confusion_matrix": [[0, 10], [0, 90]]}, {0: "class 0 was never decided"}),
    ("LR-", {"confusion_matrix": [[0, 10], [0, 90]]}, {1: "class 1 was always decided"}),
    (
        "MK",
        {"confusion_matrix": [[0, 10], [0, 90]]},
        {0: "class 0 was never decided", 1: "class 1 was always decided"},
    ),
    ("JAC", {"confusion_matrix": [[0, 0], [0, 7]]}, {0: "class 0 is neither present nor decided"}),
    ("MCC", {"confusion_matrix": [[0, 10], [0, 90]]}, "every decision is the same"),
    ("MCC", {"confusion_matrix": [[0, 0], [10, 90]]}, "every reference sample is of one class"),
    (
        "CK",
        {"confusion_matrix": [[0, 0], [0, 90]]},
        "0/0: one class is all of the reference and of the decisions",
    ),
    (
        "NB",
        {"confusion_matrix": [[1, 1], [1, 1]], "threshold": 1},
        dict.fromkeys((0, 1), "threshold 1 has no exchange rate"),
    ),
    (
        "EC",
        {"confusion_matrix": [[0, 0], [0, 90]], "prevalence": [0.5, 0.5]},
        "no reference sample of class 0, whose prevalence is positive",
    ),
    (
        "NEC",
        {"confusion_matrix": [[0, 0], [0, 90]]},
        "0/0: neither the decisions nor the naive classifier cost anything",
    ),
    (
        "AUROC",
        {"labels": [0], "probabilities": [[1, 0]]},
        {0: "every reference sample is of class 0", 1: "no reference sample of class 1"},
    ),
    ("AP", {"labels": [0], "probabilities": [[1, 0]]}, {1: "no reference sample of class 1"}),
    (
        "BSS",
        {"labels": [0], "probabilities": [[1, 0]]},
        "0/0: every reference sample is of one class, and predicted with certainty",
    ),
]


@pytest.mark.parametrize(("acronym", "inputs", "reason"), SENTENCES)
def test_what_is_undefined_has_its_reason(acronym, inputs, reason):
    found = compute_metrics([acronym], **inputs)
    told = found.reasons[acronym]
    assert (told if isinstance(told, str) else dict(told)) == reason


def test_every_metric_that_can_be_undefined_says_why():
    nothing = {"labels": [], "probabilities": np.zeros((0, 2))}
    found = compute_metrics(POOL, **nothing)
    assert all(np.isnan(value).all() for value in found.values())
    assert set(found.reasons) == set(POOL)


def test_infinite_values_need_no_reason():
    found = compute_metrics(["LR+", "NEC", "NLL", "BSS"], labels=[0, 0], probabilities=[[1, 0], [0, 1]])
    assert found["NEC"] == math.inf
    assert found["NLL"] == math.inf
    assert found["BSS"] == -math.inf
    assert set(found.reasons) == {"LR+"}
