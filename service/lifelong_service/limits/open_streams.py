"""Limit of the streams that one worker keeps open: each holds a connection and asks the database every second."""

from collections import Counter

from lifelong_core.values.errors import UnavailableError

MOST_STREAMS = 16
MOST_STREAMS_OF_TOKEN = 4


class OpenStreams:
    """Counts the open streams of a worker; used in its event loop only.

    Args:
        most: largest number of streams at a time.
        most_of_token: the same of one token.
    """

    def __init__(self, most: int = MOST_STREAMS, most_of_token: int = MOST_STREAMS_OF_TOKEN) -> None:
        self._most = most
        self._most_of_token = most_of_token
        self._open: Counter[str] = Counter()

    def open(self, token: str) -> None:
        """Count a new stream.

        Raises:
            UnavailableError: there are too many, of this token or of all.
        """
        own, total = self._open[token], self._open.total()
        if own >= self._most_of_token or total >= self._most:
            raise UnavailableError(
                f"this worker has {total} open streams, {own} of them of the token {token!r}; it keeps at most"
                f" {self._most}, {self._most_of_token} of one token.",
                hint="Try again later, or ask for the log: GET /v1/admin/jobs/{job}/log.",
            )
        self._open[token] += 1

    def close(self, token: str) -> None:
        """Count the end of a stream."""
        self._open[token] -= 1
