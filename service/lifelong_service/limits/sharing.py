"""Fair shares of a bounded resource among an unknown number of users."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


def has_room(*, own: float, total: float, limit: float) -> bool:
    """Whether one of several users of a resource may take more of it.

    Each may hold as much as is free: a single user at most half of the limit, two users a third each, so that a new
    user always gets a share. These are the dynamic thresholds of Choudhury and Hahne (1998).

    Args:
        own: amount that this user holds.
        total: amount that all users hold together.
        limit: size of the resource.

    Examples:
        >>> has_room(own=49, total=49, limit=100), has_room(own=50, total=50, limit=100)
        (True, False)
        >>> has_room(own=0, total=50, limit=100)
        True
    """
    return own + total < limit


class FairSlots:
    """A number of slots that clients share by `has_room`. Used in the event loop only.

    Args:
        most: number of slots.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    def has_room(self, client: str) -> bool:
        """Whether this client may hold another slot."""
        return has_room(own=self._held[client], total=self._held.total(), limit=self._most)

    @contextmanager
    def hold(self, client: str) -> Iterator[None]:
        """Hold a slot until the block ends."""
        self._held[client] += 1
        try:
            yield
        finally:
            self._held[client] -= 1
            if not self._held[client]:
                del self._held[client]
