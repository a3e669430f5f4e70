"""A sample of labelled images, for a comparison that is too costly on all of them."""

from collections.abc import Sequence

import numpy as np

from lifelong_core.values.arrays import Integers


def sample_images(
    labels: Integers, groups: Sequence[str | None] | None, *, most: int, seed: int
) -> list[int]:
    """Positions of images for a comparison, ascending: classes by turns, one image of each group.

    So rare classes count as much as frequent ones, and the images are independent.

    Args:
        labels: shape (N,), classes.
        groups: N keys; None: the image is its own group, or all are.
        most: largest number of images.
        seed: of the order in which images are taken.
    """
    order: list[int] = np.random.default_rng(seed).permutation(len(labels)).tolist()
    waiting = [[at for at in order if labels[at] == k][::-1] for k in np.unique(labels)]
    chosen: list[int] = []
    taken: set[str] = set()
    while len(chosen) < most and any(waiting):
        for queue in waiting:
            while queue:
                at = queue.pop()
                group = None if groups is None else groups[at]
                if group not in taken:
                    chosen.append(at)
                    taken.update(() if group is None else (group,))
                    break
    return sorted(chosen[:most])
