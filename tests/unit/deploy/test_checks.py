"""Names of the classes of a new task."""

import pytest

from lifelong_core.deploy.checks import as_new_class_names
from lifelong_core.values.errors import InvalidInputError


@pytest.mark.parametrize(
    "name",
    [
        "abstain",
        "Abstain",
        "a/b",
        "a\\b",
        "a,b",
        " a",
        "a ",
        ".a",
        "..",
        "__MACOSX",
        "label",
        "group",
        "logit_1",
        "a\nb",
        "\u00e4" * 128,
        "B",
        "b ",
    ],
)
def test_a_name_that_means_something_else_somewhere_is_refused(name):
    with pytest.raises(InvalidInputError) as caught:
        as_new_class_names([name, "b"])
    assert caught.value.field == "class_names"


@pytest.mark.parametrize("names", [("1", "0"), ("0", "2", "1"), ("a b", "a  b"), ("\u00e4", "a\u0308")])
def test_names_that_may_be_taken_for_each_other_are_refused(names):
    with pytest.raises(InvalidInputError):
        as_new_class_names(names)


@pytest.mark.parametrize("name", ["none", "null", "nan", "true", "0", "2", 'a "b"', "a;b", "a'b", "<b>", "="])
def test_other_names_are_taken(name):
    assert as_new_class_names([name, "normal"]) == (name, "normal")


def test_names_are_kept_in_composed_form():
    assert as_new_class_names(["La\u0308sion", "b"]) == ("L\u00e4sion", "b")
