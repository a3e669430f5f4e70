from dataclasses import dataclass

import numpy as np

from lifelong_core.values.array_value import ArrayValue


@dataclass(frozen=True, eq=False)
class Example(ArrayValue):
    numbers: np.ndarray


def test_missing_numbers_are_equal_in_the_same_places() -> None:
    left, right = (Example(np.asarray([1.0, float("nan")])) for _ in range(2))
    assert left == right
    assert hash(left) == hash(right)
    assert left != Example(np.asarray([float("nan"), 1.0]))
    assert left != Example(np.asarray([1.0, 2.0]))


def test_texts_are_compared() -> None:
    assert Example(np.asarray(["a", "b"])) == Example(np.asarray(["a", "b"]))
    assert Example(np.asarray(["a", "b"])) != Example(np.asarray([0.0, 1.0]))
