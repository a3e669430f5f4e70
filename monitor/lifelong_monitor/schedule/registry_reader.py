"""The registry as a tick knows it: read at its start, before each population is judged, and after its own swaps."""

from lifelong_core.store import Registry, Store
from lifelong_core.values.errors import UnavailableError


class RegistryReader:
    """Holds the registry between two reads; a read takes one cheap query while nothing has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._registry: Registry | None = None

    @property
    def registry(self) -> Registry:
        """The registry as of the newest read.

        Raises:
            UnavailableError: it was never read.
        """
        if self._registry is None:
            raise UnavailableError("the database has no registry.")
        return self._registry

    def refresh(self) -> Registry:
        """Read the registry again if it has changed, and return it.

        Raises:
            UnavailableError: the database does not answer, or has no registry.
        """
        known_revision = None if self._registry is None else self._registry.revision
        self._registry = self._store.registry(known_revision) or self._registry
        return self.registry
