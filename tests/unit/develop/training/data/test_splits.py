"""Splits hold each case once, never part what belongs together, and keep the shares of all classes."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.develop.training.data.cases import Cases
from lifelong_core.develop.training.data.splits import given_splits, split_cases, tied_units
from lifelong_core.develop.training.recipe import SPLITS
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.training.data.examples import SHARES, cases_of


def split(cases: Cases, digests=None, *, seed=0, shares=SHARES):
    digests = [str(number) for number in range(len(cases))] if digests is None else digests
    return split_cases(cases, tied_units(cases, digests), shares, seed=seed)


@st.composite
def tied_cases(draw):
    """Two or three classes, each with eight cases of their own; other cases share groups and images at random."""
    classes = draw(st.integers(2, 3))
    more = draw(st.integers(0, 40))
    labels = [
        *list(range(classes)) * 8,
        *draw(st.lists(st.integers(0, classes - 1), min_size=more, max_size=more)),
    ]
    some = st.one_of(st.none(), st.integers(0, 12))
    groups = [None] * (8 * classes) + draw(st.lists(some, min_size=more, max_size=more))
    images = [None] * (8 * classes) + draw(st.lists(some, min_size=more, max_size=more))
    digests = [f"own {at}" if image is None else f"shared {image}" for at, image in enumerate(images)]
    return cases_of(labels, [None if group is None else f"group {group}" for group in groups]), digests


@given(tied_cases(), st.integers(0, 3))
def test_each_case_is_in_one_split_and_what_is_tied_stays_together(example, seed):
    cases, digests = example
    found = split(cases, digests, seed=seed)
    assert tuple(found) == SPLITS
    positions = np.concatenate(list(found.values()))
    assert sorted(positions.tolist()) == list(range(len(cases)))
    assert all((np.diff(members) > 0).all() for members in found.values())
    places = {at: name for name, members in found.items() for at in members.tolist()}
    for keys in (cases.groups, digests):
        together = defaultdict(set)
        for at, key in enumerate(keys):
            if key is not None:
                together[key].add(places[at])
        assert all(len(names) == 1 for names in together.values())


@given(st.lists(st.integers(10, 60), min_size=2, max_size=4), st.integers(0, 3))
def test_without_groups_every_class_has_its_share_in_every_split(sizes, seed):
    labels = [label for label, size in enumerate(sizes) for _ in range(size)]
    cases = cases_of(labels)
    found = split(cases, seed=seed)
    for label, size in enumerate(sizes):
        for name, share in SHARES.items():
            assert abs((cases.labels[found[name]] == label).sum() - share * size) < 1.5


@given(st.lists(st.integers(1, 8), min_size=40, max_size=60), st.integers(0, 3))
def test_with_groups_shares_differ_by_no_more_than_a_group(sizes, seed):
    """The classes alternate, so that a group can be divided into its classes by no split."""
    groups = [f"group {number}" for number, size in enumerate(sizes) for _ in range(size)]
    cases = cases_of([at % 2 for at in range(len(groups))], groups)
    found = split(cases, seed=seed)
    for name, share in SHARES.items():
        assert abs(len(found[name]) - share * len(cases)) <= max(sizes)


@pytest.mark.parametrize("seed", range(6))
def test_small_groups_make_up_for_a_large_one(seed):
    sizes = [1] * 60 + [40]
    groups = [f"group {number}" for number, size in enumerate(sizes) for _ in range(size)]
    found = split(cases_of([at % 2 for at in range(len(groups))], groups), seed=seed)
    for name, share in SHARES.items():
        assert abs(len(found[name]) - share * len(groups)) < 3


def test_the_order_of_the_files_is_without_effect_and_the_seed_is_not():
    cases = cases_of([0, 1] * 40)
    shuffled = np.random.default_rng(0).permutation(80)
    names = {name: set(members.tolist()) for name, members in split(cases).items()}
    moved = {
        name: set(shuffled[members].tolist())
        for name, members in split(cases.take(shuffled.tolist())).items()
    }
    assert moved == names
    other = {name: set(members.tolist()) for name, members in split(cases, seed=1).items()}
    assert other != names
    assert {name: len(members) for name, members in other.items()} == {
        name: len(members) for name, members in names.items()
    }


def test_a_rare_class_is_in_every_split():
    cases = cases_of([0] * 400 + [1] * 4)
    assert all((cases.labels[members] == 1).sum() == 1 for members in split(cases).values())


def test_a_class_that_cannot_be_in_every_split_is_named():
    cases = cases_of([0] * 40 + [1] * 20, [None] * 40 + ["one patient"] * 20)
    with pytest.raises(InvalidInputError, match="split has no image of class 1") as caught:
        split(cases)
    assert caught.value.field == "images"


def test_two_splits_only():
    found = split(cases_of([0, 1] * 20), shares={"training": 0.9, "validation": 0.1})
    assert {name: len(members) for name, members in found.items()} == {"training": 36, "validation": 4}


def test_given_splits_are_taken_as_they_are():
    cases = cases_of([0, 1] * 4)
    named = [name for name in SPLITS for _ in range(2)]
    assert {name: members.tolist() for name, members in given_splits(cases, named).items()} == {
        name: [2 * at, 2 * at + 1] for at, name in enumerate(SPLITS)
    }


def test_a_given_split_without_a_class_is_refused():
    with pytest.raises(InvalidInputError, match="the calibration split has no image of class 0, class 1"):
        given_splits(
            cases_of([0, 1] * 3), ["training", "training", "validation", "validation", "test", "test"]
        )


def test_a_chain_of_group_and_identical_image_is_one_unit():
    cases = cases_of([0, 1, 0, 1], ["a", "a", "b", None])
    units = tied_units(cases, ["1", "2", "2", "4"])
    assert units[0] == units[1] == units[2] != units[3]
