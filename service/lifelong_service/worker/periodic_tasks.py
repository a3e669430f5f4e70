"""What a worker does beside its work: it keeps a copy of the registry on the disk, and says that it lives."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from lifelong_core.errors import LifelongError, UnavailableError
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.store.registry.records import Registry

Value = TypeVar("Value")

logger = logging.getLogger(__name__)


class PeriodicTask(Generic[Value]):
    """A thread that works on the newest value that it was given, at once and then again and again.

    Whatever fails is logged, the same failure once, and tried again at the next turn; nobody waits for it.

    Args:
        what: for the log, e.g. "the registry cannot be kept".
        work: gets the value.
        seconds: time between two turns with the same value.
        finish: called at the end.
    """

    def __init__(
        self,
        what: str,
        work: Callable[[Value], None],
        *,
        seconds: float,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self._what = what
        self._work = work
        self._seconds = seconds
        self._finish = finish
        self._value: Value | None = None
        self._failure: str | None = None
        self._wake = threading.Event()
        self._stop = False
        # A daemon: disk or database may hang, and the process must end all the same.
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def offer(self, value: Value) -> None:
        """Put this in the place of the value before."""
        self._value = value
        self._wake.set()

    def close(self, seconds: float) -> None:
        """Finish; after so many seconds nobody waits for it any longer."""
        self._stop = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stop:
            self._wake.wait(self._seconds)
            self._wake.clear()
            value = self._value
            if value is not None and not self._stop:
                self._try(lambda value=value: self._work(value))
        self._try(self._finish)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except LifelongError as error:
            if str(error) != self._failure:
                logger.warning(self._what, extra={"details": {"reason": str(error)}})
            self._failure = str(error)
        except Exception as error:
            if repr(error) != self._failure:
                logger.exception(self._what)
            self._failure = repr(error)
        else:
            self._failure = None


class CacheKeeper:
    """Writes the registry to its cache, and again where another process has put an older one in its place.

    Args:
        cache: shared with the other workers of this machine.
        is_current: whether this worker knows what is in the database now.
    """

    def __init__(self, cache: RegistryCache, is_current: Callable[[], bool]) -> None:
        self._cache = cache
        self._is_current = is_current
        self._saved: Registry | None = None
        self._seen: tuple[int, int] | None = None

    def __call__(self, registry: Registry) -> None:
        """Make sure that the cache holds this registry.

        Raises:
            UnavailableError: it cannot be written.
        """
        if registry is self._saved and (self._stamp() == self._seen or not self._is_current()):
            return
        if registry is not self._saved or not self._holds(registry):
            self._cache.save(registry)
        self._saved, self._seen = registry, self._stamp()

    def _holds(self, registry: Registry) -> bool:
        try:
            return self._cache.revision() == registry.revision
        except UnavailableError:
            return False

    def _stamp(self) -> tuple[int, int] | None:
        try:
            status = self._cache.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns
