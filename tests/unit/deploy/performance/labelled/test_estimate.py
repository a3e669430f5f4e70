import json

import numpy as np

from lifelong_core.deploy.performance.labelled.estimate import clustered_covariance, effective_number
from lifelong_core.deploy.performance.labelled.weighted import weighted_estimate


def test_undefined_and_infinite_numbers_are_null_in_the_document():
    found = weighted_estimate([0, 0, 1], [0, 0, 1], classes=2, metrics=("AC", "LR+", "PPV"))
    document = json.loads(json.dumps(found.to_document(), allow_nan=False))
    assert document["estimates"]["LR+"] == [None] * 3
    assert document["labelled"] == 3
    assert document["estimates"]["AC"][0] == 1


def test_the_effective_number_counts_groups_of_equal_weight_once():
    assert effective_number(np.ones(12), None) == 12
    assert effective_number(np.ones(12), np.arange(12) // 4) == 3
    assert effective_number(np.array([3.0, 1.0]), None) == 1.6


def test_the_covariance_of_groups_is_that_of_their_sums():
    influences = np.array([[1.0, 2.0], [3.0, -1.0], [-4.0, -1.0]])
    groups = np.array(["a", "b", "a"])
    expected = np.array([[9 + 9, -3 - 3], [-3 - 3, 1 + 1]]) * 2
    assert (clustered_covariance(influences, groups) == expected).all()
