"""State from one tick to the next: the newest visit of each population, and the registry."""

from collections.abc import Collection
from datetime import UTC, datetime

from lifelong_core.store import Registry, Store, Visit
from lifelong_core.store.cycles.watching import Population
from lifelong_core.values.errors import UnavailableError


class Visits:
    """Keeps the newest visit of each population for the heartbeat, and when it was last known to be watched."""

    def __init__(self) -> None:
        self._visits: dict[Population, Visit] = {}
        self._watched_at: dict[Population, datetime] = {}
        self._listed: tuple[Visit, ...] | None = ()

    def keep(self, populations: Collection[Population]) -> None:
        """Forget the visits of every population that is not among these."""
        for population in self._visits.keys() - populations:
            del self._visits[population]
            self._listed = None

    def note(self, population: Population, outcome: str, reason: str) -> None:
        """Note the outcome of a visit."""
        self._visits[population] = Visit(
            *population,
            visited_at=datetime.now(UTC),
            outcome=outcome,
            reason=reason,
            watched_at=self._watched_at.get(population),
        )
        self._listed = None

    def note_success(self, population: Population, at: datetime | None) -> bool:
        """Note when a population was last known to be watched, and return whether that is later than before.

        An earlier time changes nothing: where another monitor holds the lease, its last cycle may be older than a
        visit of this monitor. Only a time in the future is replaced: the clock was set back since.
        """
        known = self._watched_at.get(population)
        is_news = at is not None and (known is None or at > known or known > datetime.now(UTC))
        if at is not None and is_news:
            self._watched_at[population] = at
        return is_news

    def list(self) -> tuple[Visit, ...]:
        """The newest visit of each population; the same object while there is no newer one."""
        if self._listed is None:
            self._listed = tuple(self._visits.values())
        return self._listed


class RegistryReader:
    """Holds the registry between two reads: at the start of a tick, before each population, and after each own swap.

    A read takes one cheap query while nothing has changed.
    """

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
