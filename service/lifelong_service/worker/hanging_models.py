"""Models whose graphs have hung workers of this host, in a file that outlives the workers."""

import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from lifelong_core.values.errors import UnavailableError

REMEMBERED: Final = timedelta(days=1)
"""Time that a hang counts."""

logger = logging.getLogger(__name__)


class HangingModels:
    """Models that hung too often are not served: each hang costs a worker.

    Args:
        path: of the file, which all workers of this host share. Without it, every model is served again.
        maximum: number of hangs within a day after which a model is not served.
    """

    def __init__(self, path: Path, *, maximum: int) -> None:
        self._path = path
        self._maximum = maximum

    def note(self, model: str) -> None:
        """Count a hang. An error of the file is logged only: the process is about to end."""
        logger.error("a model hangs", extra={"details": {"model": model}})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC).isoformat()} {model}\n")
        except OSError:
            logger.exception("a hang of a model is not counted")

    def quarantined(self) -> dict[str, str]:
        """Return the reason for each model that is not served."""
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:  # there is none yet; a file that cannot be read must not stop the other models
            return {}
        counts = Counter(model for line in lines if (model := _recent(line)) is not None)
        return {
            model: f"it has hung {count} workers within a day. Promote another version; to try this one again, remove"
            f" {self._path}."
            for model, count in counts.items()
            if count >= self._maximum
        }

    def check(self, model: str) -> None:
        """Check that a model may be served.

        Raises:
            UnavailableError: it hung too often.
        """
        if (reason := self.quarantined().get(model)) is not None:
            raise UnavailableError(reason)


def _recent(line: str) -> str | None:
    """Return the model of a line of the file, if it still counts."""
    moment, _, model = line.partition(" ")
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(moment).astimezone(UTC)
    except (ValueError, OverflowError):  # damaged
        return None
    return model if abs(age) < REMEMBERED else None  # the clock may have been set back
