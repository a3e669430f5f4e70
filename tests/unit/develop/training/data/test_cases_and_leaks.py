"""Images without a usable class or split, and given splits that share patients or images, are refused by name."""

import re
from dataclasses import replace

import pytest

from lifelong_core.develop.features.sources.entry import Entry
from lifelong_core.develop.training.data.cases import read_cases
from lifelong_core.develop.training.data.splits import check_leaks, contradictory_labels
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.training.data.examples import MemorySource, cases_of, source_of


class ListedTwice(MemorySource):
    def entries(self):
        yield from [*self.files, *self.files]


def entries(*labels, **fields):
    made = [Entry(f"{at}.png", label) for at, label in enumerate(labels)]
    return MemorySource(
        {
            replace(entry, **{name: values[at] for name, values in fields.items()}): b""
            for at, entry in enumerate(made)
        }
    )


def test_cases_are_in_the_order_of_names_whatever_the_order_of_the_files():
    source = source_of(6)
    turned = MemorySource(dict(reversed(source.files.items())))
    first, second = read_cases(source), read_cases(turned)
    assert first.entries == second.entries
    assert first.labels.tolist() == second.labels.tolist() == [0, 1] * 3


def test_labels_follow_the_class_names_that_are_given():
    assert read_cases(source_of(4), ["class 1", "class 0"]).labels.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("source", "class_names", "message"),
    [
        (MemorySource({}), None, "there is no image"),
        (ListedTwice({Entry("a.png", "x"): b""}), None, "listed twice: a.png"),
        (entries("x", None, "y", None), None, "2 of 4 images have no class: 1.png, 3.png"),
        (entries("x", "x"), None, "at least two classes"),
        (entries("melanoma", "naevus"), ["melanoma", "nevus"], "not of the task: naevus.*nevus"),
        (entries("x", "y"), ["x", "y", "z"], "no image of z"),
        (entries("x", "y", split=["test", None]), None, "1 of 2 images have no split: 1.png"),
        (entries("x", "y", split=["test", "train"]), None, "no split train.*training, validation"),
    ],
)
def test_what_cannot_be_used_is_named(source, class_names, message):
    with pytest.raises(InvalidInputError) as caught:
        read_cases(source, class_names)
    assert caught.value.field in ("images", "split")
    assert re.search(message, f"{caught.value.message} {caught.value.hint}")


def test_a_group_in_two_splits_is_named_with_its_images():
    cases = cases_of([0, 1, 0, 1], ["ann", "ben", "ann", "ben"])
    with pytest.raises(InvalidInputError) as caught:
        check_leaks(cases, list("1234"), ["training", "test", "validation", "test"])
    assert caught.value.field == "split"
    assert caught.value.message == (
        "1 group is in more than one split: ann: 0000.png (training) and 0002.png (validation)."
    )


def test_an_identical_image_in_two_splits_is_named():
    with pytest.raises(InvalidInputError) as caught:
        check_leaks(cases_of([0, 1, 0]), ["1", "2", "2"], ["training", "training", "test"])
    assert caught.value.message == (
        "1 identical image is in more than one split: 0001.png (training) and 0002.png (test)."
    )


def test_many_leaks_are_counted_and_the_first_ones_named():
    labels = [0, 1] * 8
    groups = [f"patient {at // 2}" for at in range(16)]
    with pytest.raises(
        InvalidInputError, match=r": 8 groups are in .*patient 0: .*patient 4: .* and 3 more\. "
    ):
        check_leaks(cases_of(labels, groups), [str(at) for at in range(16)], ["training", "test"] * 8)


def test_without_leaks_nothing_is_said():
    check_leaks(cases_of([0, 1, 0, 1], ["a", "a", None, None]), list("1123"), ["training"] * 2 + ["test"] * 2)


def test_identical_images_of_different_classes_are_named():
    cases = cases_of([0, 1, 1, 0])
    assert contradictory_labels(cases, list("1231")) is None
    assert contradictory_labels(cases, list("1123")) == (
        "Identical images have different classes: 0000.png (class 0) = 0001.png (class 1)."
    )
