"""A cycle in words, for the log."""

from collections.abc import Sequence

from lifelong_monitor.cycle import CycleResult, report_of


def describe(result: CycleResult, class_names: Sequence[str]) -> str:
    """Outcome, reason, estimate with interval, window and published head in one line."""
    parts = [f"{result.outcome}. {result.reason}"]
    if result.last is not None:
        estimate = report_of(result.last).prevalence
        if estimate is not None:
            classes = zip(class_names, estimate.prevalence, estimate.low, estimate.high, strict=True)
            shares = ", ".join(
                f"{name} {value:.3f} ({low:.3f} to {high:.3f})" for name, value, low, high in classes
            )
            parts.append(f"Estimated prevalence: {shares}.")
        parts.append(f"Window: {result.last.window_samples} predictions.")
        if result.last.published_version is not None:
            parts.append(f"Published head {result.last.published_version}.")
    return " ".join(parts)
