"""The bounded form of the soak: no process grows, and the leaking monitor is detected."""

import pytest

from tests.soak.__main__ import MOST_QUICK_GROWTH
from tests.soak.memory import Sample, growth
from tests.soak.soak import QUICK, Soaked, soak

pytestmark = pytest.mark.timeout(900)
WATCHED = ("monitor", "worker 1", "worker 2")


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Soaked:
    return soak(tmp_path_factory.mktemp("soak"), QUICK)


@pytest.mark.parametrize("name", WATCHED)
def test_no_process_grows(name: str, soaked: Soaked) -> None:
    assert soaked.growth()[name] < MOST_QUICK_GROWTH


def test_a_leak_is_found(soaked: Soaked) -> None:
    assert soaked.growth()["leaking monitor"] > MOST_QUICK_GROWTH


def test_the_installation_worked_meanwhile(soaked: Soaked) -> None:
    assert soaked.failures == []
    assert soaked.cycles["keep"] > 0
    assert soaked.cycles["swap"] > 0


def test_growth_is_that_of_unique_memory_after_the_warm_up() -> None:
    samples = [Sample(second, 1000 * second, 100 + max(0, second - 60)) for second in range(101)]
    assert growth(samples, after=0, until=40) == 0
    assert growth(samples, after=20, until=100) == pytest.approx(0.22, abs=0.02)
    with pytest.raises(ValueError, match="no process was weighed"):
        growth(samples, after=200, until=300)
