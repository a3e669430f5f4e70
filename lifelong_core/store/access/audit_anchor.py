"""The anchor of the audit log outside the database: in a file of the host, and in the log of its processes."""

import logging
import time
from pathlib import Path

from lifelong_core.store.access.audit_chain import Anchor
from lifelong_core.store.access.audit_log import AuditLog
from lifelong_core.store.files import write_whole
from lifelong_core.values.errors import ConfigurationError, ConflictError, UnavailableError

DAY_SECONDS = 86_400.0
"""The anchor is logged again after this time, so that a log of some weeks always holds one."""

logger = logging.getLogger(__name__)


class AnchorFile:
    """File of the newest anchor that processes of this host have read.

    Args:
        path: of the file; it may be missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Anchor | None:
        """Read the anchor; None: there is no file yet.

        Raises:
            ConfigurationError: the file cannot be read.
            InvalidInputError: it holds no anchor.
        """
        try:
            return Anchor.parse(self.path.read_text(encoding="ascii", errors="replace"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigurationError(
                f"the file {self.path} cannot be read: {error.strerror}.",
                hint="It belongs to the user that runs service and monitor.",
            ) from error

    def advance(self, audit: AuditLog) -> None:
        """Write the anchor of the newest entry to the file and to the process log, unless it is there.

        An anchor that the audit log does not hold stays in the file as evidence.

        Raises:
            ConflictError: the audit log does not hold the anchor.
            ConfigurationError: the file cannot be read.
            InvalidInputError: the file holds no anchor.
            UnavailableError: the file cannot be written, or the database does not answer.
        """
        known, newest = self.read(), audit.newest()
        if known is not None and (fault := audit.fault_of(known)) is not None:
            raise ConflictError(
                f"the audit log is not what it was: {fault.text}",
                field=str(self.path),
                hint="See `lifelong audit verify`. After an older backup was restored, remove this file.",
            )
        if newest is None or (known == newest and not self._is_old()):
            return
        try:
            write_whole(self.path, f"{newest}\n".encode())
        except OSError as error:
            raise UnavailableError(f"the file {self.path} cannot be written: {error.strerror}.") from error
        logger.info("the newest entry of the audit log", extra={"details": {"anchor": str(newest)}})

    def _is_old(self) -> bool:
        try:
            return time.time() - self.path.stat().st_mtime > DAY_SECONDS
        except OSError:
            return True
