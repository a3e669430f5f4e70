"""Splits of cases into training, validation, calibration and test: whole units, every class in its share."""
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lifelong_core.develop.training.data.cases import Cases, list_some
from lifelong_core.develop.training.recipe import SPLITS, SplitName
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError


def split_cases(
    cases: Cases, units: NDArray[np.int64], shares: Mapping[SplitName, float], *, seed: int
) -> dict[SplitName, NDArray[np.int64]]:
    """Assign whole units to splits so that every class comes as close to its share in each as the units allow.

    The largest units are assigned first, each to the split where it lowers the squared distance to the shares of all
    classes most; units of equal size come in the order of a hash of seed and names, so that the splits depend neither
    on the order nor on the place of the files.

    Args:
        cases: the N images.
        units: shape (N,), number of the unit of each.
        shares: of the splits; they need not sum to 1.
        seed: of the hashes.

    Returns:
        Ascending positions of the cases of each split.

    Raises:
        InvalidInputError: a split would have no case of a class; the message names both.
    """
    names = tuple(shares)
    counts = _counts(cases, units)
    targets = _targets(counts, np.array([shares[name] for name in names]))
    chosen = _assign(counts, targets, _order(cases, units, counts, seed))
    places = chosen[units]
    splits: dict[SplitName, NDArray[np.int64]] = {
        name: np.flatnonzero(places == number).astype(np.int64) for number, name in enumerate(names)
    }
    check_classes(cases, splits)
    return splits


def given_splits(
    cases: Cases, splits: Sequence[SplitName], wanted: Sequence[SplitName] = SPLITS
) -> dict[SplitName, NDArray[np.int64]]:
    """The splits that the data name.

    Args:
        cases: the N images.
        splits: of each.
        wanted: splits that are used; images of others are not.

    Raises:
        InvalidInputError: a split has no case of a class.
    """
    named = np.array(splits)
    found: dict[SplitName, NDArray[np.int64]] = {
        name: np.flatnonzero(named == name).astype(np.int64) for name in wanted
    }
    check_classes(cases, found)
    return found


def check_classes(cases: Cases, splits: Mapping[SplitName, NDArray[np.int64]]) -> None:
    """Make sure that every split has cases of every class.

    Raises:
        InvalidInputError: one has none; the message names split and classes.
    """
    for name, positions in splits.items():
        present = set(cases.labels[positions].tolist())
        missing = [label for number, label in enumerate(cases.class_names) if number not in present]
        if missing:
            raise InvalidInputError(
                f"the {name} split has no image of {list_some(missing)}.",
                field="images",
                hint="Give more images (or groups) of this class, or name the splits in a CSV file.",
            )


def _counts(cases: Cases, units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Images of each class in each unit, shape (U, C)."""
    counts = np.zeros((int(units.max()) + 1, len(cases.class_names)), dtype=np.int64)
    np.add.at(counts, (units, cases.labels), 1)
    return counts


def _targets(counts: NDArray[np.int64], shares: Floats) -> Floats:
    """Wanted images of each class in each split, shape (S, C).

    At least one of a class that has enough units, so that a rare class is in all splits.
    """
    totals = counts.sum(axis=0)
    targets = np.outer(shares / shares.sum(), totals)
    has_enough = (counts > 0).sum(axis=0) >= len(shares)
    least = np.where(has_enough, 1.0, 0.0)
    targets = np.maximum(targets, least)
    return targets * (totals / targets.sum(axis=0))


def _order(cases: Cases, units: NDArray[np.int64], counts: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Units by descending size, then by the smallest hash of their cases."""
    keys = np.full(len(counts), np.iinfo(np.uint64).max, dtype=np.uint64)
    hashes = np.array([_hash(entry.name, seed) for entry in cases.entries], dtype=np.uint64)
    np.minimum.at(keys, units, hashes)
    return np.lexsort((keys, -counts.sum(axis=1)))


def _hash(name: str, seed: int) -> int:
    text = f"split {seed}\n{name}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


def _assign(counts: NDArray[np.int64], targets: Floats, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The split of each unit, shape (U,)."""
    chosen = np.zeros(len(counts), dtype=np.int64)
    missing = targets.copy()
    weights = 1 / np.maximum(targets, 1e-9)
    for unit in order:
        added = counts[unit]
        present = np.flatnonzero(added)
        # Change of sum (target - count)^2 / target by this unit, in each split.
        change = ((added[present] - 2 * missing[:, present]) * added[present] * weights[:, present]).sum(
            axis=1
        )
        split = int(np.argmin(change))
        chosen[unit] = split
        missing[split, present] -= added[present]
    return chosen


# scipy's graphs have no types.


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
