from io import BytesIO

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import MOST_KEYS, LabelledSet
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.values.errors import InvalidInputError

LABELLED = LabeledLogits([[2.0, 0.0], [0.5, 1.0], [1.0, 0.0]], [0, 1, 0], ["a", "a", "b"])


def test_bytes_hold_everything_and_are_those_of_equal_sets() -> None:
    data = LabelledSet(
        LABELLED, {"site": ["x", "y", "x"], "age": [50, 61.5, 70], "first": [True, False, True]}
    )
    again = LabelledSet.from_bytes(data.to_bytes())
    assert again == data
    assert again.to_bytes() == data.to_bytes()
    assert [again.metadata[key].dtype.kind for key in ("age", "first", "site")] == ["f", "b", "U"]
    assert LabelledSet(LABELLED, dict(reversed(data.metadata.items()))).to_bytes() == data.to_bytes()


@pytest.mark.parametrize("metadata", [{}, {"site": ["x", "y", "z"]}, {"place": ["x", "y", "x"]}])
def test_other_metadata_is_another_set(metadata: dict[str, list[str]]) -> None:
    assert LabelledSet(LABELLED, metadata) != LabelledSet(LABELLED, {"site": ["x", "y", "x"]})


def test_a_file_of_numpy_is_read_and_a_calibration_set_is_one() -> None:
    file = BytesIO()
    np.savez(file, logits=LABELLED.logits, labels=LABELLED.labels, metadata_site=np.array(["x", "y", "x"]))
    read = LabelledSet.from_bytes(file.getvalue())
    assert read.metadata["site"].tolist() == ["x", "y", "x"]
    assert LabelledSet.from_bytes(LABELLED.to_bytes()) == LabelledSet(LABELLED)


def test_the_logits_of_two_models_are_no_labelled_set() -> None:
    both = PairedSet(LabelledSet(LABELLED), LABELLED.logits)
    with pytest.raises(InvalidInputError, match="two models") as caught:
        LabelledSet.from_bytes(both.to_bytes())
    assert caught.value.field == "current_logits"


def test_nothing_can_be_changed() -> None:
    values = np.array(["x", "y", "x"])
    data = LabelledSet(LABELLED, {"site": values})
    values[0] = "z"
    assert data.metadata["site"][0] == "x"
    with pytest.raises(ValueError, match="read-only"):
        data.metadata["site"][0] = "z"


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"site": ["x", "y"]}, "metadata.site"),
        ({"site": [["x"], ["y"], ["z"]]}, "metadata.site"),
        ({"site": [["x"], ["y", "z"], []]}, "metadata.site"),
        ({"site": [{}, {}, {}]}, "metadata.site"),
        ({"": ["x", "y", "z"]}, "metadata"),
        ({"a\nb": ["x", "y", "z"]}, "metadata"),
        ({"k" * 101: ["x", "y", "z"]}, "metadata"),
        ({f"key {index}": [1, 2, 3] for index in range(MOST_KEYS + 1)}, "metadata"),
    ],
)
def test_what_does_not_fit_is_named(metadata: dict[str, list[object]], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        LabelledSet(LABELLED, metadata)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_pickled_objects_are_refused() -> None:
    file = BytesIO()
    objects = np.array([{}, {}, {}], dtype=object)
    np.savez(file, logits=LABELLED.logits, labels=LABELLED.labels, metadata_site=objects)
    with pytest.raises(InvalidInputError, match="without pickled objects"):
        LabelledSet.from_bytes(file.getvalue())


LOGITS = np.array([[2.0, 0.0], [0.5, 1.0], [0.0, 3.0]], np.float32)
PLAIN = LabeledLogits(LOGITS, [0, 1, 1])


def file_of(**arrays) -> bytes:
    file = BytesIO()
    np.savez(file, logits=LOGITS, labels=[0, 1, 1], **arrays)
    return file.getvalue()


def members(number: int) -> dict[str, np.ndarray]:
    return {f"logits_{place}": LOGITS + place * np.eye(3, 2) for place in range(1, number + 1)}


def test_single_columns_are_members_of_a_single_column():
    columns = LOGITS[:, 1:] - LOGITS[:, :1]
    file = BytesIO()
    np.savez(file, logits=columns, labels=[0, 1, 1], logits_1=columns, logits_2=2 * columns)
    found = LabelledSet.from_bytes(file.getvalue()).members
    np.testing.assert_array_equal(found[1], np.float32(np.hstack([0 * columns, 2 * columns])))


def test_uncertainties_and_members_are_part_of_the_file():
    uncertain = LabelledSet.from_bytes(file_of(uncertainties=np.array([0.1, 0.2, 0], np.float32)))
    assert uncertain == LabelledSet(PLAIN, uncertainties=np.float32([0.1, 0.2, 0]))
    assert LabelledSet.from_bytes(uncertain.to_bytes()) == uncertain
    drawn = LabelledSet.from_bytes(file_of(**members(100)))
    np.testing.assert_array_equal(drawn.members, np.float32(list(members(100).values())))
    assert LabelledSet.from_bytes(drawn.to_bytes()) == drawn
    assert drawn != uncertain
    assert not drawn.members.flags.writeable


@pytest.mark.parametrize(
    ("arrays", "field"),
    [
        (members(101), "members"),
        (members(1), "members"),
        ({"logits_0": LOGITS, **members(2)}, "logits_0"),
        ({"logits_2": LOGITS, "logits_1": LOGITS}, "members"),  # all equal
        ({"logits_1": LOGITS, "logits_3": LOGITS}, "logits_3"),
        ({**members(2), "logits_2": LOGITS[:2]}, "logits_2"),
        ({**members(2), "logits_1": LOGITS[:, :1]}, "logits_1"),
        ({**members(2), "logits_1": np.full((3, 2), np.nan)}, "logits_1"),
        ({**members(2), "logits_1": np.full((3, 2), 0.5)}, "logits_1"),  # probabilities
        ({**members(2), "uncertainties": np.ones(3)}, "uncertainties"),
        ({"uncertainties": np.ones(2)}, "uncertainties"),
        ({"uncertainties": [-1, 0, 0]}, "uncertainties"),
        ({"uncertainties": [np.nan, 0, 0]}, "uncertainties"),
        ({"uncertainties": [np.inf, 0, 0]}, "uncertainties"),
    ],
)
def test_what_does_not_fit_is_refused(arrays, field):
    with pytest.raises(InvalidInputError) as refused:
        LabelledSet.from_bytes(file_of(**arrays))
    assert refused.value.field == field
