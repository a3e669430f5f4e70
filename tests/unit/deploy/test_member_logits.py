from io import BytesIO

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.values.errors import InvalidInputError

LOGITS = np.array([[2.0, 0.0], [0.5, 1.0], [0.0, 3.0]], np.float32)
LABELLED = LabeledLogits(LOGITS, [0, 1, 1])


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
    assert uncertain == LabelledSet(LABELLED, uncertainties=np.float32([0.1, 0.2, 0]))
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
