import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labeled import stratified_folds


def data(labels, groups=None):
    return LabeledLogits(np.zeros((len(labels), max(labels) + 1)), labels, groups)


def test_every_class_is_dealt_out_evenly():
    calibration = data([0] * 20 + [1] * 10)
    folds = stratified_folds(calibration, 5)
    for k, share in ((0, 4), (1, 2)):
        assert np.bincount(folds[calibration.labels == k]).tolist() == [share] * 5


def test_a_small_class_has_fewer_folds():
    assert stratified_folds(data([0] * 20 + [1] * 3), 5).max() == 2


def test_a_single_sample_of_a_class_allows_no_folds():
    assert not stratified_folds(data([0] * 20 + [1]), 5).any()


def test_groups_stay_together():
    groups = np.repeat(np.arange(12), 5)
    folds = stratified_folds(data([0, 1] * 30, groups), 5)
    assert all(len(set(folds[groups == group])) == 1 for group in range(12))
    assert set(folds) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("fold", range(5))
def test_a_fold_leaves_every_class_behind(fold):
    calibration = data([0] * 20 + [1] * 7 + [2] * 2)
    rest = calibration.labels[stratified_folds(calibration, 5) != fold]
    assert set(rest) == {0, 1, 2}


def test_one_group_with_all_of_a_class_allows_no_folds():
    assert not stratified_folds(data([0] * 10 + [1] * 4, np.r_[np.arange(10), [99] * 4]), 5).any()
