import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.addresses import is_this_machine


@pytest.mark.parametrize(
    ("host", "listening", "reached"),
    [
        ("::1", "http://[::1]:3000", "http://[::1]:3000"),
        ("::", "http://[::]:3000", "http://[::1]:3000"),
        ("0.0.0.0", "http://0.0.0.0:3000", "http://127.0.0.1:3000"),
        ("localhost", "http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("10.0.0.7", "http://10.0.0.7:3000", "http://10.0.0.7:3000"),
    ],
)
def test_urls_of_addresses(host: str, listening: str, reached: str) -> None:
    settings = Settings(host=host)
    assert settings.listening_url(settings.port) == listening
    assert settings.service_url == reached


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.3.2.1", "::1", "0.0.0.0"])
def test_hosts_of_this_machine(host: str) -> None:
    assert is_this_machine(host)


@pytest.mark.parametrize("host", ["service.clinic", "203.0.113.7", "2001:db8::7", "localhost.clinic", ""])
def test_other_hosts(host: str) -> None:
    assert not is_this_machine(host)
