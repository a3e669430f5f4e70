"""Environments that predictions create, also during an outage of the database."""

import time
from collections.abc import Callable
from typing import Final

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.registry import unlisted_environment
from lifelong_core.store.registry.environments import too_fast, too_many
from lifelong_core.values.names import check_name
from lifelong_service.prediction.database_calls import DATABASE_FAILURES, DatabaseCalls

CREATED_SECONDS: Final = 1.0
"""After this time the registry holds a created environment, unless it was deleted since."""


class NewEnvironments:
    """Creates environments within the limits of the settings; used in the batcher's thread.

    Args:
        settings: limits.
        database: creates them unless its circuit breaker is open.
        environments: returns those of the served registry.
    """

    def __init__(
        self, settings: Settings, database: DatabaseCalls, environments: Callable[[], frozenset[str]]
    ) -> None:
        self._maximum = settings.maximum_environments
        self._hourly = settings.maximum_new_environments_per_hour
        self._may_create = settings.environment_creation == "open"
        self._database = database
        self._environments = environments
        self._created: dict[str, float] = {}
        self._promised: dict[str, tuple[str, float]] = {}
        """Environments that the delivery of the spool creates, with their creator and time."""

    def ensure(self, name: str, *, creator: str, source: str | None = None) -> None:
        """Create an environment unless it exists; in an outage, check that the spool delivery may create it.

        Args:
            name: name of the environment.
            creator: name of the token that predicts.
            source: address of the client.

        Raises:
            InvalidInputError: the name is not valid.
            NotFoundError: predictions do not create environments here.
            ConflictError: the largest number of environments exists.
            TooManyRequestsError: the creator has created its largest number per hour.
        """
        created = self._created.get(name)
        is_new = created is not None and time.monotonic() - created < CREATED_SECONDS
        if is_new or name in self._environments():
            return
        if not self._may_create:
            raise unlisted_environment(name)
        if self._database.outage is None:
            try:
                self._database.call(
                    lambda store: store.environments.ensure(
                        name, limit=self._maximum, creator=creator, hourly=self._hourly, source=source
                    )
                )
            except DATABASE_FAILURES as error:
                self._database.report_failure(error)
            else:
                self._created[name] = time.monotonic()
                return
        self._promise(name, creator)

    def forget_promises(self) -> None:
        """Reset the promised environments: the spool has been delivered."""
        self._promised.clear()

    def _promise(self, name: str, creator: str) -> None:
        check_name(name, field="environment")
        known = self._environments() | self._created.keys() | self._promised.keys()
        if name in known:
            return
        if len(known) >= self._maximum:
            raise too_many(name, len(known))
        since = time.monotonic() - 3600
        recent = [other for other, moment in self._promised.values() if other == creator and moment > since]
        if len(recent) >= self._hourly:
            raise too_fast(name, self._hourly)
        self._promised[name] = creator, time.monotonic()
