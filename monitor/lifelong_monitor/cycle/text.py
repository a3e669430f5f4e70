"""The log lines of cycles."""

import logging
from collections.abc import Sequence

from lifelong_core.deploy.criterion.expected_criterion import describe_criterion
from lifelong_core.store import Cycle, Model
from lifelong_core.store.cycles.swaps import AffectedFigures
from lifelong_core.store.cycles.watching import Population
from lifelong_monitor.cycle.cycle import CycleResult


def format_cycle(result: CycleResult, class_names: Sequence[str]) -> str:
    """Format a recorded cycle (`result.outcome` is not "skip") as one line.

    It names outcome, reason, estimate with interval, window, published or proposed head, and cautions.
    """
    effect = result.outcome if result.last is None else result.last.effect
    parts = [f"{effect}. {result.reason}"]
    if result.last is not None:
        report = result.report
        if report is not None and report.prevalence is not None:
            estimate = report.prevalence
            classes = zip(class_names, estimate.prevalence, estimate.low, estimate.high, strict=True)
            shares = ", ".join(
                f"{name} {value:.3f} ({low:.3f} to {high:.3f})" for name, value, low, high in classes
            )
            parts.append(f"Estimated prevalence: {shares}.")
        if report is not None and report.criterion is not None:
            parts.append(describe_criterion(report.criterion))
        if report is not None and report.outcome == "swap" and report.candidate_criterion is not None:
            parts.append(f"With the new head: {describe_criterion(report.candidate_criterion)}")
        left_out = 0 if result.inputs is None else result.inputs.quarantined or 0
        apart = f", and {left_out} that cannot be judged and were left out" if left_out else ""
        parts.append(f"Window: {result.last.window_samples} predictions{apart}.")
        if result.last.published_version is not None:
            parts.append(f"Published head {result.last.published_version}.")
        elif result.last.proposal is not None:
            parts.append(f"Proposed; publish it with: lifelong heads approve {result.last.id}.")
        elif result.outcome == "swap":
            parts.append("Nothing is published in shadow mode.")
        cautions = [] if report is None or report.prevalence is None else report.prevalence.cautions
        if cautions := [*cautions, *(() if result.inputs is None else result.inputs.clocks)]:
            parts.append(f"Caution: {' '.join(cautions)}")
    return " ".join(parts)


def format_affected(figures: AffectedFigures, cycle: Cycle) -> str:
    """Format how many decisions before a swap the new head would change, and the command that lists them."""
    counts = figures.counts
    since = figures.since.isoformat(timespec="seconds")
    return (
        f"head {cycle.published_version} would make {counts.affected} of {counts.predictions} decisions since {since}"
        f" otherwise ({100 * counts.share:.1f} %). As made, they cost {counts.expected_cost:.6g} more by its"
        f" probabilities."
        f" They are listed by: lifelong cycles affected {cycle.id}."
    )


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
