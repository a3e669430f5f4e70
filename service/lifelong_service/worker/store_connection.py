"""The store of a worker, which may open long after the worker has started."""

import threading

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.access import Token
from lifelong_core.entities.registry import Registry
from lifelong_core.store import Store
from lifelong_core.store.registry.changes import Changes
from lifelong_core.values.errors import LifelongError, UnavailableError
from lifelong_service.worker.group_keyring import GroupKeyring
from lifelong_service.worker.serving_state import ServingState


class StoreConnection:
    """Opens the store at the first poll that reaches the database; threads may share it.

    Args:
        settings: settings of this process.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store: Store | None = None
        self._problem = "the database has not been opened yet."
        self._opening = threading.Lock()
        self._changes = Changes()

    def get(self) -> Store:
        """The open store.

        Raises:
            UnavailableError: it could not be opened yet.
        """
        if self._store is None:
            raise UnavailableError(f"the database cannot be used: {self._problem}", hint="Try again later.")
        return self._store

    def open(self) -> Store:
        """Open the store unless it is open.

        Raises:
            LifelongError: the database or the artifacts cannot be used.
        """
        with self._opening:
            if self._store is None:
                try:
                    self._store = Store.from_settings(self._settings)
                except LifelongError as error:
                    self._problem = str(error)
                    raise
                waiting, self._changes = self._changes, self._store.changes()
                waiting.close()
            return self._store

    def changes(self) -> Changes:
        """The wait for changes of the registry; an open store provides its own."""
        return self._changes

    def close(self) -> None:
        """Close the store if it is open."""
        if self._store is not None:
            self._store.close()


class RegistrySource:
    """Reads the registry for the poller, and confirms new group keys of this host.

    Args:
        connection: opened here.
        group_keyring: keyring of this host.
    """

    def __init__(self, connection: StoreConnection, group_keyring: GroupKeyring) -> None:
        self._connection = connection
        self._group_keyring = group_keyring

    def fetch(self, known_revision: int | None) -> Registry | None:
        """The registry; None while it has the known revision.

        Raises:
            LifelongError: the database does not answer.
        """
        store = self._connection.open()
        registry = store.registry(known_revision)
        if registry is not None and self._group_keyring.confirm(store, registry.group_keys):
            registry = store.registry()
        return registry


class TokenFinder:
    """Finds tokens that the served registry does not hold yet.

    Args:
        connection: to the database.
        serving: holds whether the database answers.
    """

    def __init__(self, connection: StoreConnection, serving: ServingState) -> None:
        self._connection = connection
        self._serving = serving

    def find(self, secret: str) -> Token | None:
        """Return the token with this secret, even if expired or revoked; None: there is none.

        Raises:
            UnavailableError: the database does not answer.
        """
        if self._serving.problem is not None:
            raise UnavailableError(
                f"the token is not known here, and the database cannot be asked: {self._serving.problem}",
                field="Authorization",
                hint="Try again later.",
            )
        return self._connection.get().tokens.find(secret)
