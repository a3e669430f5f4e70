"""Who is logged in to the console: sessions are in the database, so all workers and replicas know them.

While the database is away nobody can log in and no page can be shown; a session goes on when it is back.
"""

from collections.abc import Callable
from datetime import timedelta

from lifelong_core.errors import UnauthenticatedError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.access.records import Token
from lifelong_service.prediction.lookups import Lookups

_FIELD = "Cookie"
_LONGEST_IDENTIFIER = 100
"""Characters of a cookie that can be an identifier of ours."""


class ConsoleSessions:
    """Finds, begins and ends the sessions of one worker's requests.

    Args:
        store: the open store; raises UnavailableError while there is none.
        outage: why the database cannot be asked; None while it answers.
        settings: with the times after which sessions end.
    """

    def __init__(
        self, store: Callable[[], Store], outage: Callable[[], str | None], settings: Settings
    ) -> None:
        self._store = store
        self._outage = outage
        self._idle = timedelta(seconds=settings.console_idle_seconds)
        self._lifetime = timedelta(seconds=settings.console_session_seconds)
        self._lookups = Lookups("session-asker", "sessions", field=_FIELD)
        self._used: set[str] = set()

    async def token(self, identifier: str | None) -> Token:
        """The token of the session in a cookie.

        Raises:
            UnauthenticatedError: there is no such session, or it is over.
            UnavailableError: the database cannot be asked.
        """
        if not identifier or len(identifier) > _LONGEST_IDENTIFIER:
            raise UnauthenticatedError("nobody is logged in here.", field=_FIELD)
        self._check_database()
        token = await self._lookups.ask(lambda: self._store().console_sessions.find(identifier))
        if token is None:
            raise UnauthenticatedError("this session is over.", field=_FIELD)
        self._used.add(identifier)
        return token

    def begin(self, secret: str, *, address: str) -> str:
        """Log in; the identifier of the new session. Waits for the database.

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
            UnavailableError: the database cannot be asked; the session ends by itself.
        """
        self._check_database()
        self._used.discard(identifier)
        self._store().console_sessions.end(identifier)

    def note_uses(self) -> None:
        """Prolong the sessions that were used since this was called before.

        Raises:
            UnavailableError: the database does not answer.
        """
        used, self._used = self._used, set()
        if used:
            self._store().console_sessions.note_use(used, idle=self._idle)

    def start(self) -> None:
        """Begin to look sessions up."""
        self._lookups.start()

    def close(self) -> None:
        """End the thread."""
        self._lookups.close()

    def _check_database(self) -> None:
        outage = self._outage()
        if outage is not None:
            raise UnavailableError(
                f"the database does not answer, and sessions of the console are there: {outage}",
                hint="Try again later: who is logged in need not do so again.",
            )
