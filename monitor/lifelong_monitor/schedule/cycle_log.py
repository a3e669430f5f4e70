"""The monitor's log lines about cycles."""

import logging

from lifelong_core.store import Model
from lifelong_core.store.cycles.watching import Population
from lifelong_monitor.cycle.cycle import CycleResult
from lifelong_monitor.cycle.text import format_cycle

log = logging.getLogger(__name__)


class CycleLog:
    """Logs each cycle that judged a window, and each reason to skip once while it lasts."""

    def __init__(self) -> None:
        self._skip_reasons: dict[Population, str] = {}

    def log_result(
        self, model: Model, environment: str, result: CycleResult, class_names: tuple[str, ...]
    ) -> None:
        """Log the result of a visit."""
        if result.outcome == "skip":
            self.log_skip(model, environment, result.reason)
            return
        log.info("%s in %s: %s", model.reference, environment, format_cycle(result, class_names))
        self._skip_reasons.pop((model.id, environment), None)

    def log_skip(self, model: Model, environment: str, reason: str) -> None:
        """Log why a population was skipped, unless it was skipped for the same reason before."""
        population = model.id, environment
        if self._skip_reasons.get(population) != reason:
            log.info("%s in %s: skip. %s", model.reference, environment, reason)
        self._skip_reasons[population] = reason
