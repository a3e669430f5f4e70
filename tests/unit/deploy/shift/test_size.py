import numpy as np
import pytest

from lifelong_core.deploy.shift.size import shift_size


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_hold_all_prevalences_within_the_intervals(seed: int) -> None:
    """Compared with many prevalences drawn from the intervals."""
    rng = np.random.default_rng(seed)
    assumed, prevalence = rng.dirichlet(np.ones(3), size=2)
    low, high = np.maximum(prevalence - 0.06, 0), np.minimum(prevalence + 0.06, 1)
    two = rng.uniform(low[:2], high[:2], (200_000, 2))
    drawn = np.column_stack([two, 1 - two.sum(axis=1)])
    inside = drawn[(drawn[:, 2] >= low[2]) & (drawn[:, 2] <= high[2])]
    distances = np.abs(inside - assumed).sum(axis=1)
    value, least, most = shift_size(assumed, prevalence, low, high)
    assert value == pytest.approx(np.abs(prevalence - assumed).sum())
    assert least == pytest.approx(distances.min(), abs=0.01)
    assert distances.max() <= most < distances.max() + 0.07


def test_it_is_two_at_most() -> None:
    assert shift_size(*(np.array(one) for one in ([1, 0], [0, 1], [0, 0.9], [0.1, 1]))) == (2, 1.8, 2)
