import io
from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labeled import check_every_class, class_means, stratified_folds
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError


@pytest.fixture
def data():
    return LabeledLogits([[2.0, 0.0], [0.5, 1.0], [3.0, -1.0]], [0, 1, 0], ["p1", "p1", "p2"])


def test_knows_its_size_and_prevalence(data):
    assert (data.samples, data.classes) == (3, 2)
    assert data.counts.tolist() == [2, 1]
    assert data.prevalence == pytest.approx([2 / 3, 1 / 3])


def test_is_frozen_and_does_not_follow_its_arguments():
    logits = np.zeros((2, 2), dtype=np.float32)
    data = LabeledLogits(logits, [0, 1])
    logits[0, 0] = 5
    assert data.logits[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        data.logits[0, 0] = 1


def test_survives_bytes(data):
    content = data.to_bytes()
    assert LabeledLogits.from_bytes(content) == data
    assert LabeledLogits.from_bytes(content).digest == data.digest
    assert content == LabeledLogits.from_bytes(content).to_bytes()


def test_reads_what_numpy_wrote():
    file = io.BytesIO()
    np.savez(file, logits=np.eye(2), labels=np.array([0, 1]))
    assert LabeledLogits.from_bytes(file.getvalue()) == LabeledLogits(np.eye(2), [0, 1])


@pytest.mark.parametrize(
    "other",
    [
        LabeledLogits([[2.0, 0.0], [0.5, 1.0], [3.0, -1.0]], [0, 1, 1], ["p1", "p1", "p2"]),
        LabeledLogits([[2.0, 0.0], [0.5, 1.0], [3.0, -1.0]], [0, 1, 0], ["p1", "p2", "p2"]),
        LabeledLogits([[2.0, 0.0], [0.5, 1.0], [3.0, -1.0]], [0, 1, 0]),
        LabeledLogits([[2.0, 0.0], [0.5, 1.0], [3.0, -1.5]], [0, 1, 0], ["p1", "p1", "p2"]),
    ],
)
def test_digest_and_equality_see_every_array(data, other):
    assert data != other
    assert data.digest != other.digest


def test_equal_data_hash_alike(data):
    again = LabeledLogits(data.logits.astype(float), data.labels.astype(np.int16), data.groups)
    assert again == data
    assert hash(again) == hash(data)
    assert again.digest == data.digest


def test_selects_rows_with_their_groups(data):
    chosen = data.select(np.array([True, False, True]))
    assert chosen.labels.tolist() == [0, 0]
    assert chosen.groups.tolist() == ["p1", "p2"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (([[0.0, np.nan]], [0]), "logits"),
        (([[0.0, 1.0]], [2]), "labels"),
        (([[0.0, 1.0]], [0, 1]), "labels"),
        ((np.empty((0, 2)), []), "logits"),
        (([[0.0, 1.0]], [0], ["a", "b"]), "groups"),
        (([[0.0, 1.0]], [0], [object()]), "groups"),
    ],
)
def test_bad_arguments_are_named(arguments, field):
    with pytest.raises(InvalidInputError) as caught:
        LabeledLogits(*arguments)
    assert caught.value.field == field


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b"", "calibration_set"),
        (b"no npz at all", "calibration_set"),
        (npz(logits=np.eye(2), labels=np.array([0, 1]))[:-40], "calibration_set"),
        (npz(logits=np.array([object()]), labels=np.array([0])), "calibration_set"),
        (npz(logits=np.eye(2)), "labels"),
        (npz(labels=np.array([0, 1])), "logits"),
    ],
)
def test_bytes_of_something_else_are_refused(content, field):
    with pytest.raises(InvalidInputError) as caught:
        LabeledLogits.from_bytes(content)
    assert caught.value.field == field


def test_a_single_npy_array_is_refused():
    file = io.BytesIO()
    np.save(file, np.eye(2))
    with pytest.raises(InvalidInputError):
        LabeledLogits.from_bytes(file.getvalue())


def test_class_means_are_the_means_of_each_class():
    data = LabeledLogits(np.eye(2)[[0, 1, 1]], [0, 1, 1])
    features = np.array([[1.0, 5.0, 2.0], [2.0, 0.0, 4.0], [4.0, 1.0, 4.0]])
    assert class_means(features, data).tolist() == [[1, 3], [5, 0.5], [2, 4]]


def test_a_class_without_samples_is_named():
    check_every_class(LabeledLogits(np.eye(3), [0, 1, 2]))
    with pytest.raises(UnidentifiableError, match="class 1"):
        check_every_class(LabeledLogits(np.eye(3), [0, 2, 2]))


def test_the_preprocessing_travels_with_the_logits_and_is_no_part_of_their_digest(data):
    known = replace(data, preprocessing_digest="ab" * 32)
    assert known != data
    assert known.digest == data.digest
    assert LabeledLogits.from_bytes(known.to_bytes()) == known
    assert known.select(np.array([0, 2])).preprocessing_digest == "ab" * 32


@pytest.mark.parametrize("digest", ["", "ab", "AB" * 32, "ab" * 33, "gg" * 32, "ab" * 32 + "\n"])
def test_a_preprocessing_digest_has_64_digits(digest):
    with pytest.raises(InvalidInputError, match="64 hexadecimal digits") as caught:
        LabeledLogits(np.eye(2), [0, 1], preprocessing_digest=digest)
    assert caught.value.field == "preprocessing_digest"


@pytest.mark.parametrize("array", [np.zeros(64), np.array(["ab" * 32, "ab" * 32]), np.array(b"ab" * 32)])
def test_a_preprocessing_digest_in_a_file_is_one_text(array):
    file = io.BytesIO()
    np.savez(file, logits=np.eye(2), labels=np.array([0, 1]), preprocessing_digest=array)
    with pytest.raises(InvalidInputError, match="64 hexadecimal digits"):
        LabeledLogits.from_bytes(file.getvalue())


def of_labels(labels, groups=None):
    return LabeledLogits(np.zeros((len(labels), max(labels) + 1)), labels, groups)


def test_every_class_is_dealt_out_evenly():
    calibration = of_labels([0] * 20 + [1] * 10)
    folds = stratified_folds(calibration, 5)
    for k, share in ((0, 4), (1, 2)):
        assert np.bincount(folds[calibration.labels == k]).tolist() == [share] * 5


def test_a_small_class_has_fewer_folds():
    assert stratified_folds(of_labels([0] * 20 + [1] * 3), 5).max() == 2


def test_a_single_sample_of_a_class_allows_no_folds():
    assert not stratified_folds(of_labels([0] * 20 + [1]), 5).any()


def test_groups_stay_together():
    groups = np.repeat(np.arange(12), 5)
    folds = stratified_folds(of_labels([0, 1] * 30, groups), 5)
    assert all(len(set(folds[groups == group])) == 1 for group in range(12))
    assert set(folds) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("fold", range(5))
def test_a_fold_leaves_every_class_behind(fold):
    calibration = of_labels([0] * 20 + [1] * 7 + [2] * 2)
    rest = calibration.labels[stratified_folds(calibration, 5) != fold]
    assert set(rest) == {0, 1, 2}


def test_one_group_with_all_of_a_class_allows_no_folds():
    assert not stratified_folds(of_labels([0] * 10 + [1] * 4, np.r_[np.arange(10), [99] * 4]), 5).any()
