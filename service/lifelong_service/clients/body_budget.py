"""The budget of request bodies that a worker holds at once, in bytes, from the first byte to the answer."""

from collections import Counter
from typing import Self

from lifelong_core.values.errors import UnavailableError
from lifelong_service import metrics
from lifelong_service.clients.sharing import has_room


class BodyBudget:
    """Counts received bytes, not declared ones. Used in the event loop only.

    Args:
        maximum_bytes: limit of all bodies together; a single body may be larger.
    """

    def __init__(self, *, maximum_bytes: int) -> None:
        self._maximum = maximum_bytes
        self._held: Counter[str] = Counter()
        self._total = 0

    def body(self, token: str, declared: int) -> "BodyShare":
        """Count the body of one request until the block of the result ends.

        Args:
            token: name of the token that sends it.
            declared: its Content-Length; 0 where there is none.

        Raises:
            UnavailableError: there is no room for it now.
        """
        if self._total and self._total + self._held[token] + declared > self._maximum:
            raise self._full(token)
        return BodyShare(self, token)

    def take(self, token: str, count: int) -> None:
        """Count more received bytes of a body.

        Raises:
            UnavailableError: there is no room for them.
        """
        is_alone = self._held[token] == self._total == 0
        if not is_alone and not has_room(own=self._held[token], total=self._total, limit=self._maximum):
            raise self._full(token)
        self._held[token] += count
        self._total += count

    def give_back(self, token: str, count: int) -> None:
        """Count the bytes of a body no longer."""
        self._held[token] -= count
        self._total -= count

    @property
    def held_bytes(self) -> int:
        """Received bytes of all bodies."""
        return self._total

    def _full(self, token: str) -> UnavailableError:
        metrics.REFUSED_REQUESTS.labels("body_bytes", token).inc()
        return UnavailableError(
            f"the bodies of other requests hold {self._total} bytes already.",
            field="body",
            hint="Try again later, or raise LIFELONG_MAXIMUM_HELD_BODY_BYTES.",
        )


class BodyShare:
    """The share of one body in the budget, until its block ends."""

    def __init__(self, budget: BodyBudget, token: str) -> None:
        self._budget = budget
        self._token = token
        self.bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.give_back(self._token, self.bytes)

    def add(self, count: int) -> None:
        """Count more received bytes.

        Raises:
            UnavailableError: there is no room for them.
        """
        if count:
            self._budget.take(self._token, count)
            self.bytes += count
