"""Arms that are measured by turns: medians over rounds, and ratios within a round, whose figures share the machine."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

Figures = dict[str, float]
Rounds = dict[str, list[Figures]]


def in_turns(arms: Mapping[str, Callable[[], Figures]], rounds: int) -> Rounds:
    """Figures of each arm in each round; every other round goes through the arms backwards."""
    names = list(arms)
    found: Rounds = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            found[name].append(arms[name]())
    return found


def medians(rounds: Sequence[Figures]) -> Figures:
    """The median of each figure; of refusals, faults and the largest latency the largest value."""
    largest = ("refused", "faults", "maximum_ms")
    return {
        name: float((np.max if name in largest else np.median)([one[name] for one in rounds]))
        for name in rounds[0]
    }


def ratios(
    numerators: Sequence[Figures], denominators: Sequence[Figures], figure: str, other: str | None = None
) -> list[float]:
    """Median, smallest and largest ratio of two figures of the same round.

    Args:
        numerators: of each round.
        denominators: of each round.
        figure: of the numerators.
        other: of the denominators; None: the same.
    """
    pairs = zip(numerators, denominators, strict=True)
    found = [above[figure] / below[other or figure] for above, below in pairs]
    return [float(value) for value in np.quantile(found, (0.5, 0, 1))]
