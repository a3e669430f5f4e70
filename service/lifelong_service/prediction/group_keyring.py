"""The key with which a worker hashes groups: only one that the database knows.

A worker never makes a key. It takes over a changed key file, and what the registry says of keys, without a restart.
"""

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lifelong_core.errors import ConfigurationError, LifelongError, UnavailableError
from lifelong_core.store import Store
from lifelong_core.store.lifecycle.group_keys import (
    GroupKeyError,
    KeyFile,
    check_complete,
    hashing_key,
    load_key_file,
)
from lifelong_service.http.errors import MENDING_SECONDS

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Judged:
    """What followed from the known digests and the state of the file.

    Attributes:
        seen: both of them.
        file: the last one that could be read.
        key: for new hashes; None: there is none, and `problem` says why.
        problem: what is wrong with the file, even if there is a key.
    """

    seen: tuple[object, ...] = ()
    file: KeyFile | None = None
    key: bytes | None = None
    problem: LifelongError | None = None


class GroupKeyring:
    """Gives the key for new hashes; threads may share it.

    Args:
        path: of the key file.
        known: the digests that the database knows, by the registry that is served (perhaps from the disk); None while
            there is none.
    """

    def __init__(self, path: Path, known: Callable[[], tuple[str, ...] | None]) -> None:
        self.path = path
        self._known = known
        self._judged = _Judged()

    def current(self) -> bytes:
        """The key for new hashes.

        Raises:
            UnavailableError: this host has no key that the database knows.
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
        """What is wrong with the key file of this host; None if nothing is, or nothing is known yet."""
        problem = None if self._known() is None else self._judge().problem
        return None if problem is None else str(problem)

    def confirm(self, store: Store, known: tuple[str, ...]) -> bool:
        """Let the database record this host's file if that is the installation's; whether it knows more now."""
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
            file = last  # a file that is being replaced, or was deleted: what was read of it holds
        try:
            key = hashing_key(file, known)
            check_complete(file, known)
        except GroupKeyError as error:
            return _Judged(seen, file, file.newest_of(known), problem or error)
        return _Judged(seen, file, key, problem)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes with the file; None if it cannot be reached."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino, state.st_mode
