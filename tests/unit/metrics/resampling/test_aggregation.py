import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics.counting.confusion import confusion_matrix
from lifelong_core.metrics.counting.multiclass import balanced_accuracy
from lifelong_core.metrics.counting.one_versus_rest import sensitivity
from lifelong_core.metrics.resampling.aggregation import hierarchical_mean, subgroup_values
from lifelong_core.metrics.scores.ranking import auroc
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import simulated

rows = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 8).map(float), st.just(math.nan)), st.integers(0, 4), st.sampled_from("ABC")
    ),
    min_size=1,
    max_size=20,
)


def mean(values):
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


@given(rows)
def test_is_a_mean_of_means_of_means(samples):
    values, patients, hospitals = zip(*samples, strict=True)
    by_hospital = {}
    for value, patient, hospital in samples:
        by_hospital.setdefault(hospital, {}).setdefault(patient, []).append(value)
    keys = sorted(by_hospital)
    expected = [mean([mean(own) for own in by_hospital[key].values()]) for key in keys]
    found = hierarchical_mean(values, [patients, hospitals])
    assert found.groups.tolist() == keys
    np.testing.assert_allclose(found.values, expected, atol=1e-12)
    np.testing.assert_allclose(found.value, mean(expected), atol=1e-12)
    assert found.undefined == sum(math.isnan(value) for value in values)
    counts = [sum(not math.isnan(v) for v, _, h in samples if h == key) for key in keys]
    assert found.samples.tolist() == counts


def test_the_patient_with_most_images_does_not_decide():
    values, patients = [1.0] * 98 + [0.0, 0.0], [1] * 98 + [2, 3]
    assert np.mean(values) == 0.98
    assert hierarchical_mean(values, [patients]).value == pytest.approx(1 / 3)


def test_without_levels_above_samples_it_is_the_mean():
    values = [0.25, 1.5, np.inf]
    assert hierarchical_mean(values[:2], [[1, 2]]).value == 0.875
    assert hierarchical_mean(values, [[1, 2, 2]]).value == math.inf


def test_nothing_has_no_mean():
    found = hierarchical_mean([], [[], []])
    assert math.isnan(found.value)
    assert found.groups.size == found.values.size == found.samples.size == 0
    assert math.isnan(hierarchical_mean([math.nan], [["A"]]).value)


@pytest.mark.parametrize(
    ("values", "levels", "field"),
    [
        ([1.0], [], "levels"),
        ([1.0], [[1, 2]], "levels"),
        ([1.0], [None], "levels"),
        (["a"], [[1]], "values"),
        ([[1.0]], [[1]], "values"),
    ],
)
def test_bad_arguments_are_named(values, levels, field):
    with pytest.raises(InvalidInputError) as caught:
        hierarchical_mean(values, levels)
    assert caught.value.field == field


def recalls(labels, decisions):
    return sensitivity(confusion_matrix(labels, decisions, classes=3))


def test_subgroups_are_side_by_side():
    rng = np.random.default_rng(0)
    labels, decisions = rng.integers(3, size=(2, 400))
    scanner, sex = rng.choice(["old", "new"], size=400), rng.integers(2, size=400)
    found = subgroup_values(recalls, labels, decisions, classes=3, metadata={"scanner": scanner, "sex": sex})
    assert [(group.attribute, group.key) for group in found] == [
        ("scanner", "new"),
        ("scanner", "old"),
        ("sex", "0"),
        ("sex", "1"),
    ]
    for group, rows_of in zip(found, [scanner == "new", scanner == "old", sex == 0, sex == 1], strict=True):
        assert group.value.tolist() == recalls(labels[rows_of], decisions[rows_of]).tolist()
        assert group.samples == group.cases == rows_of.sum()
        assert group.class_samples.tolist() == np.bincount(labels[rows_of]).tolist()
        assert group.warnings == ()


def test_missing_values_are_a_subgroup_and_forms_of_unicode_are_one():
    lesion = np.array(["Na\u0308vus", "N\u00e4vus", "none", "", "none", "Nävus"])
    found = subgroup_values(recalls, [0, 1, 2, 0, 1, 2], [0] * 6, classes=3, metadata={"lesion": lesion})
    assert [(group.key, group.samples) for group in found] == [("", 1), ("N\u00e4vus", 3), ("none", 2)]


def test_small_subgroups_and_classes_are_pointed_out():
    labels = np.repeat([0, 1, 0, 1], [30, 9, 10, 20])
    site = np.repeat(["A", "B"], [39, 30])
    small, enough = subgroup_values(recalls, labels, labels, classes=3, metadata={"site": site})
    assert small.warnings == (
        "only 9 independent cases of class 1, fewer than 10.",
        "no case of class 2.",
    )
    assert enough.warnings == ("no case of class 2.",)
    assert np.isnan(small.value).tolist() == [False, False, True]
    (fewer,) = subgroup_values(
        recalls, labels[10:39], labels[10:39], classes=2, metadata={"site": site[10:39]}
    )
    assert fewer.warnings[0] == "only 29 independent cases, fewer than 30."


def test_images_of_a_patient_are_one_case():
    labels, patients = np.repeat([0, 1], 50), np.repeat(np.arange(20), 5)
    (group,) = subgroup_values(
        lambda y, decided: balanced_accuracy(confusion_matrix(y, decided, classes=2)),
        labels,
        labels,
        classes=2,
        metadata={"site": ["A"] * 100},
        groups=patients,
    )
    assert (group.samples, group.cases, float(group.value)) == (100, 20, 1.0)
    assert group.warnings == ("only 20 independent cases, fewer than 30.",)


def test_outputs_may_be_probabilities():
    labels, probabilities = simulated(200)
    first, second = subgroup_values(
        auroc, labels, probabilities, classes=3, metadata={"half": np.arange(200) // 100}
    )
    assert first.value.tolist() == auroc(labels[:100], probabilities[:100]).tolist()
    assert second.value.shape == (3,)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"labels": [0, 3]}, "labels"),
        ({"outputs": [0]}, "outputs"),
        ({"metadata": {"site": [1]}}, "metadata.site"),
        ({"groups": [1]}, "groups"),
    ],
)
def test_bad_arguments_of_subgroups_are_named(changed, field):
    arguments = {"labels": [0, 1], "outputs": [0, 1], "classes": 3, "metadata": {"site": ["A", "B"]}}
    with pytest.raises(InvalidInputError) as caught:
        subgroup_values(recalls, **(arguments | changed))
    assert caught.value.field == field
