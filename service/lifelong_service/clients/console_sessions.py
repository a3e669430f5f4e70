"""Sessions of the console, stored in the database and shared by all workers and replicas.

During an outage of the database there is no login and no page; sessions continue afterwards.
"""

from collections.abc import Callable
from datetime import timedelta

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.access import Token
from lifelong_core.store import Store
from lifelong_core.values.errors import UnauthenticatedError, UnavailableError
from lifelong_service.clients.authentication import Lookups

_FIELD = "Cookie"
_LONGEST_IDENTIFIER = 100
"""Longest identifier of a session, in characters."""
_MOST_KNOWN = 1000
"""Largest number of sessions that are remembered as valid."""


class ConsoleSessions:
    """Finds, starts and ends console sessions for the requests of one worker.

    Args:
        store: the open store; raises UnavailableError while there is none.
        outage: returns why the database cannot be asked; None while it answers.
        settings: time limits of sessions.
    """

    def __init__(
        self, store: Callable[[], Store], outage: Callable[[], str | None], settings: Settings
    ) -> None:
        self._store = store
        self._outage = outage
        self._idle = timedelta(seconds=settings.console_idle_seconds)
        self._lifetime = timedelta(seconds=settings.console_session_seconds)
        # Apart, so that made-up identifiers do not delay those that were valid before.
        self._lookups = Lookups("session-asker", "sessions", field=_FIELD)
        self._known_lookups = Lookups("known-session-asker", "sessions", field=_FIELD)
        self._known: dict[str, None] = {}
        self._used: set[str] = set()

    async def token(self, identifier: str | None, *, client: str) -> Token:
        """Return the token of the session in a cookie.

        Args:
            identifier: the cookie.
            client: address of the browser.

        Raises:
            UnauthenticatedError: there is no such session, or it has ended.
            UnavailableError: the database cannot be asked.
        """
        if not identifier or len(identifier) > _LONGEST_IDENTIFIER:
            raise UnauthenticatedError("the console needs a login.", field=_FIELD)
        self._check_database()
        lookups = self._known_lookups if identifier in self._known else self._lookups
        token = await lookups.ask(lambda: self._store().console_sessions.find(identifier), client=client)
        if token is None:
            self._known.pop(identifier, None)
            raise UnauthenticatedError("the session has ended.", field=_FIELD)
        self._known[identifier] = None
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._used.add(identifier)
        return token

    def begin(self, secret: str, *, address: str) -> str:
        """Log in; return the identifier of the new session. Waits for the database.

        Raises:
            UnauthenticatedError: the token is unknown, expired or revoked.
            UnavailableError: the database cannot be asked.
        """
        self._check_database()
        return self._store().console_sessions.begin(
            secret, address=address, idle=self._idle, lifetime=self._lifetime
        )

    def end(self, identifier: str) -> None:
        """Log out. Waits for the database.

        Raises:
            UnavailableError: the database cannot be asked; the session expires later.
        """
        self._check_database()
        self._used.discard(identifier)
        self._store().console_sessions.end(identifier)

    def note_uses(self) -> None:
        """Extend the sessions that were used since the previous call.

        Raises:
            UnavailableError: the database does not answer.
        """
        used, self._used = self._used, set()
        if used:
            self._store().console_sessions.note_use(used, idle=self._idle)

    def start(self) -> None:
        """Start the threads that look up sessions."""
        self._lookups.start()
        self._known_lookups.start()

    def close(self) -> None:
        """End the threads."""
        self._lookups.close()
        self._known_lookups.close()

    def _check_database(self) -> None:
        outage = self._outage()
        if outage is not None:
            raise UnavailableError(
                f"sessions of the console are in the database, which does not answer: {outage}",
                hint="Try again later. Present sessions continue.",
            )
