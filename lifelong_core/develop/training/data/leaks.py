"""What ties cases together: cases of one group, and identical images, belong in one split."""
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# scipy's graphs have no types.

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lifelong_core.develop.training.data.cases import Cases, list_some
from lifelong_core.develop.training.recipe import SplitName
from lifelong_core.values.errors import InvalidInputError


def tied_units(cases: Cases, digests: Sequence[str]) -> NDArray[np.int64]:
    """Number the units of cases that must share a split, shape (N,): same group, identical image, or both in a chain.

    Args:
        cases: the N images.
        digests: of their pixels.
    """
    pairs = [*_chains(_by_key(cases.groups)), *_chains(_by_key(digests))]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    size = len(cases)
    ties = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(size, size))
    _, units = connected_components(ties, directed=False)
    return np.asarray(units, dtype=np.int64)


def check_leaks(cases: Cases, digests: Sequence[str], splits: Sequence[SplitName]) -> None:
    """Make sure that given splits share no group and no identical image.

    Raises:
        InvalidInputError: they do; the message names the first ones.
    """
    for what, keys in (("group", cases.groups), ("identical image", digests)):
        shared = {
            key: found for key, found in _by_key(keys).items() if len({splits[index] for index in found}) > 1
        }
        if shared:
            examples = [_describe(cases, splits, key, found, what) for key, found in shared.items()]
            raise InvalidInputError(
                f"{len(shared)} {what}{'s are' if len(shared) > 1 else ' is'} in more than one split:"
                f" {list_some(examples)}.",
                field="split",
                hint="A model would be judged on what it has seen. Move all of each into one split, or name no splits.",
            )


def contradictory_labels(cases: Cases, digests: Sequence[str]) -> str | None:
    """A warning that names identical images of different classes; None: there are none."""
    wrong = [
        " = ".join(
            f"{cases.entries[index].name} ({cases.class_names[cases.labels[index]]})" for index in found
        )
        for found in _by_key(digests).values()
        if len({int(cases.labels[index]) for index in found}) > 1
    ]
    if not wrong:
        return None
    return f"Identical images have different classes: {list_some(wrong)}."


def _by_key(keys: Iterable[Hashable | None]) -> Mapping[Hashable, list[int]]:
    """Positions of each key that occurs more than once; None is no key."""
    found: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        if key is not None:
            found[key].append(index)
    return {key: positions for key, positions in found.items() if len(positions) > 1}


def _chains(groups: Mapping[Hashable, list[int]]) -> list[tuple[int, int]]:
    return [pair for found in groups.values() for pair in pairwise(found)]


def _describe(
    cases: Cases, splits: Sequence[SplitName], key: Hashable, found: Sequence[int], what: str
) -> str:
    first = found[0]
    other = next(index for index in found if splits[index] != splits[first])
    places = (
        f"{cases.entries[first].name} ({splits[first]}) and {cases.entries[other].name} ({splits[other]})"
    )
    return f"{key}: {places}" if what == "group" else places
