"""Failed logins are limited by address and in all; they cannot lock out known addresses."""

import pytest

from lifelong_core.values.errors import TooManyRequestsError
from lifelong_service.clients import limits
from lifelong_service.clients.limits import LoginLimiter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limiter(clock: Clock) -> LoginLimiter:
    return LoginLimiter(3, clock=clock)


def fails(limiter: LoginLimiter, address: str, times: int) -> int:
    """How many of so many failing attempts are looked at."""
    looked_at = 0
    for _ in range(times):
        try:
            limiter.begin(address)
        except TooManyRequestsError:
            continue
        looked_at += 1
    return looked_at


def test_an_address_may_fail_so_often_in_a_minute(limiter: LoginLimiter, clock: Clock) -> None:
    assert fails(limiter, "10.0.0.1", 9) == 3
    with pytest.raises(TooManyRequestsError) as refused:
        limiter.begin("10.0.0.1")
    assert refused.value.retry_after_seconds == 20
    clock.now = 19
    assert fails(limiter, "10.0.0.1", 1) == 0
    clock.now = 20
    assert fails(limiter, "10.0.0.1", 2) == 1
    assert fails(limiter, "10.0.0.2", 9) == 3


def test_all_addresses_together_may_fail_ten_times_as_often(limiter: LoginLimiter) -> None:
    assert sum(fails(limiter, f"10.0.0.{index}", 1) for index in range(50)) == 3 * limits.SHARE


def test_strangers_do_not_lock_out_an_address_that_is_known(limiter: LoginLimiter) -> None:
    limiter.begin("192.168.0.7")
    limiter.succeed("192.168.0.7")
    assert sum(fails(limiter, f"10.0.0.{index}", 1) for index in range(50)) == 3 * limits.SHARE
    assert fails(limiter, "192.168.0.8", 9) == 0
    assert fails(limiter, "192.168.0.7", 9) == 3


def test_what_succeeds_or_could_not_be_looked_at_does_not_count(limiter: LoginLimiter) -> None:
    for _ in range(50):
        limiter.begin("10.0.0.1")
        limiter.forgive("10.0.0.1")
    for _ in range(50):
        limiter.begin("10.0.0.1")
        limiter.succeed("10.0.0.1")
    assert fails(limiter, "10.0.0.1", 9) == 3


@pytest.mark.parametrize(
    ("first", "second", "are_one"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("", "", True),
    ],
)
def test_who_counts_as_one(limiter: LoginLimiter, first: str, second: str, are_one: bool) -> None:
    assert fails(limiter, first, 9) == 3
    assert fails(limiter, second, 9) == (0 if are_one else 3)


def test_addresses_without_end_take_no_memory_without_end(
    limiter: LoginLimiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_ADDRESSES", 100)
    monkeypatch.setattr(limits, "MOST_KNOWN", 10)
    for index in range(300):
        address = f"10.0.{index // 256}.{index % 256}"
        limiter.begin(address)
        limiter.succeed(address)
    assert (len(limiter._buckets), len(limiter._known)) == (100, 10)
