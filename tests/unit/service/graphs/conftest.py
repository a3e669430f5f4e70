import pytest

from tests.unit.service.graphs.gpu_double import Machine, install


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a GPU; see `gpu_double`."""
    return install(monkeypatch)
