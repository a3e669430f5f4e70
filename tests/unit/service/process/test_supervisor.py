"""The supervisor of the workers has no socket that another process could connect to."""

import pytest
from bentoml._internal.utils.circus import create_standalone_arbiter
from circus.arbiter import Arbiter

from lifelong_core.values.errors import ConfigurationError
from lifelong_service.process.supervisor import prepare_supervisors


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arbiter, "__init__", Arbiter.__init__)
    prepare_supervisors()
    prepare_supervisors()  # once is enough, twice is harmless


def test_its_addresses_are_inside_the_process() -> None:
    first, second = create_standalone_arbiter([]), create_standalone_arbiter([])
    addresses = {one for each in (first, second) for one in (each.endpoint, each.pubsub_endpoint)}
    assert len(addresses) == 4
    assert all(address.startswith("inproc://") for address in addresses)
    assert first.check_delay == 10


def test_plugins_which_need_a_socket_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="without `--reload`"):
        create_standalone_arbiter([], plugins=[{"use": "circus.plugins.watchdog.WatchDog"}])
