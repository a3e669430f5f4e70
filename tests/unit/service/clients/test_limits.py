"""Limits of tokens, with a clock that the test sets."""

from contextlib import ExitStack

import pytest

from lifelong_core.configuration.settings import Settings, TokenLimits
from lifelong_core.values.errors import TooManyRequestsError
from lifelong_service.clients.limits import TokenLimiter
from lifelong_service.clients.sharing import TokenBucket


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def limiter(clock: Clock, **limits: float) -> TokenLimiter:
    found = TokenLimits.model_validate(limits)
    return TokenLimiter(lambda _: found, clock=clock)


def send(made: TokenLimiter, token: str = "a") -> None:
    with made.request(token):
        pass


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = TokenBucket(rate=4, burst=2, now=0)
    assert [bucket.take(1, now=0) for _ in range(3)] == [0, 0, 0.25]
    assert bucket.take(1, now=0.24) > 0
    assert bucket.take(1, now=0.25) == 0
    assert [bucket.take(1, now=1000) for _ in range(3)] == [0, 0, 0.25]
    assert bucket.take(3, now=5000) == float("inf")


def test_a_clock_that_steps_back_gives_nothing_away() -> None:
    bucket = TokenBucket(rate=1, burst=1, now=10)
    assert bucket.take(1, now=10) == 0
    assert bucket.take(1, now=5) > 0
    assert bucket.take(1, now=10.5) > 0


def test_the_rate_of_requests_is_that_of_each_token() -> None:
    clock = Clock()
    made = limiter(clock, requests_per_second=2)
    send(made)
    send(made)
    with pytest.raises(TooManyRequestsError) as caught:
        send(made)
    assert "requests_per_second" in caught.value.message
    assert "'a'" in caught.value.message
    assert caught.value.retry_after_seconds == 1
    send(made, "b")
    clock.now += 0.5
    send(made)


def test_requests_at_once_are_counted_until_they_end() -> None:
    made = limiter(Clock(), concurrent_requests=2)
    with ExitStack() as open_ones:
        open_ones.enter_context(made.request("a"))
        open_ones.enter_context(made.request("a"))
        with pytest.raises(TooManyRequestsError, match="concurrent_requests"):
            send(made)
        send(made, "b")
    send(made)


def test_a_request_that_fails_is_not_counted_for_ever() -> None:
    made = limiter(Clock(), concurrent_requests=1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), made.request("a"):
            raise ZeroDivisionError


def test_rows_are_counted_by_the_minute() -> None:
    clock = Clock()
    made = limiter(clock, rows_per_minute=60)
    made.take_rows("a", 60)
    with pytest.raises(TooManyRequestsError, match="rows_per_minute") as caught:
        made.take_rows("a", 10)
    assert caught.value.retry_after_seconds == 10
    clock.now += 10
    made.take_rows("a", 10)
    with pytest.raises(TooManyRequestsError) as caught:
        made.take_rows("a", 61)
    assert "fewer rows" in (caught.value.hint or "")


def test_a_token_may_have_limits_of_its_own() -> None:
    settings = Settings(
        token_limits=TokenLimits(requests_per_second=5, rows_per_minute=100),
        named_token_limits={"gateway": TokenLimits(requests_per_second=50)},
    )
    assert settings.limits_for("gateway") == TokenLimits(requests_per_second=50, rows_per_minute=100)
    assert settings.limits_for("other") == settings.token_limits
