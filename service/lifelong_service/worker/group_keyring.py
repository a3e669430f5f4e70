"""The key for hashes of groups; its digest must be in the database.

A worker never creates a key. It reads changes of the key file and of the registry without a restart.
"""

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lifelong_core.store import Store
from lifelong_core.store.lifecycle.group_keys import (
    GroupKeyError,
    KeyFile,
    check_complete,
    hashing_key,
    load_key_file,
)
from lifelong_core.values.errors import ConfigurationError, LifelongError, UnavailableError
from lifelong_service.clients.limits import MENDING_SECONDS

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Judged:
    """The result of a check of the key file against the known digests.

    Attributes:
        seen: known digests and state of the file at the check.
        file: the latest readable content.
        key: key for new hashes; None: there is none, for the reason in `problem`.
        problem: fault of the file, even if there is a key.
    """

    seen: tuple[object, ...] = ()
    file: KeyFile | None = None
    key: bytes | None = None
    problem: LifelongError | None = None


class GroupKeyring:
    """Provides the key for new hashes; threads may share it.

    Args:
        path: path of the key file.
        known: returns the digests of the database, from the served registry; None while there is none.
    """

    def __init__(self, path: Path, known: Callable[[], tuple[str, ...] | None]) -> None:
        self.path = path
        self._known = known
        self._judged = _Judged()

    def current(self) -> bytes:
        """Return the key for new hashes.

        Raises:
            UnavailableError: this host has no key with a digest in the database.
        """
        judged = self._judge()
        if judged.key is None:
            raise UnavailableError(
                f"predictions with a group cannot be logged here: {judged.problem and judged.problem.message}",
                field="group",
                hint=judged.problem and judged.problem.hint,
                retry_after_seconds=MENDING_SECONDS,
            )
        return judged.key

    def problem(self) -> str | None:
        """Fault of this host's key file; None: it has none, or there is no registry yet."""
        problem = None if self._known() is None else self._judge().problem
        return None if problem is None else str(problem)

    def confirm(self, store: Store, known: tuple[str, ...]) -> bool:
        """Record new keys of this host's file in the database; return whether there were any."""
        try:
            file = KeyFile.load(self.path)
            if not file.unknown_newer(known):
                return False
            return store.group_keys.confirm(file, actor=f"service:{socket.gethostname()}") != known
        except LifelongError as error:
            logger.warning("the key file is not confirmed", extra={"details": {"reason": str(error)}})
            return False

    def _judge(self) -> _Judged:
        known = self._known() or ()
        seen = (known, _stamp(self.path))
        before = self._judged
        if seen != before.seen:
            self._judged = judged = self._judge_anew(seen, known, before.file)
            if judged.problem is not None and str(judged.problem) != str(before.problem):
                logger.error("the group key is not right", extra={"details": {"reason": str(judged.problem)}})
        return self._judged

    def _judge_anew(self, seen: tuple[object, ...], known: tuple[str, ...], last: KeyFile | None) -> _Judged:
        problem: LifelongError | None = None
        try:
            file = load_key_file(self.path, known)
        except ConfigurationError as error:
            problem = error
            if last is None:
                return _Judged(seen, None, None, problem)
            file = last  # the file is being replaced, or was deleted: the latest content holds
        try:
            key = hashing_key(file, known)
            check_complete(file, known)
        except GroupKeyError as error:
            return _Judged(seen, file, file.newest_of(known), problem or error)
        return _Judged(seen, file, key, problem)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return a stamp that changes with the file; None: it cannot be read."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino, state.st_mode
