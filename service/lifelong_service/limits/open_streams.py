"""Limit of the streams that one worker keeps open: each holds a connection and asks the database every second."""

from lifelong_core.errors import UnavailableError

MOST_STREAMS = 16


class OpenStreams:
    """Counts the open streams of a worker; used in its event loop only.

    Args:
        most: largest number of streams at a time.
    """

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._most = most
        self._open = 0

    def open(self) -> None:
        """Count a new stream.

        Raises:
            UnavailableError: there are too many.
        """
        if self._open >= self._most:
            raise UnavailableError(
                f"this worker has {self._open} open streams, the most that it keeps.",
                hint="Try again later, or ask for the log: GET /v1/admin/jobs/{job}/log.",
            )
        self._open += 1

    def close(self) -> None:
        """Count the end of a stream."""
        self._open -= 1
