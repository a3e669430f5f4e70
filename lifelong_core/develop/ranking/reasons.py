"""The evidence of a suggestion as sentences."""

from lifelong_core.develop.ranking.suggestion import Evidence


def explain(evidence: Evidence, expected_gain: float, measure: str) -> tuple[str, ...]:
    """Sentences for people, the most important first."""
    return (
        *_measured_sentence(evidence, measure),
        _baseline_sentence(evidence, expected_gain, measure),
        _track_record_sentence(evidence, measure),
        _distance_sentence(evidence),
        f"The task cards agree to {evidence.card_similarity:.0%}.",
        f"This rests on {evidence.outcomes:,} measured transfers in this scenario.",
    )


def _measured_sentence(evidence: Evidence, measure: str) -> tuple[str, ...]:
    if evidence.measured_gain is None:
        return ()
    return (f"This transfer was measured: it changed {measure} by {evidence.measured_gain:+.3f}.",)


def _baseline_sentence(evidence: Evidence, expected_gain: float, measure: str) -> str:
    rest = expected_gain - evidence.baseline_effect
    return (
        f"An average source is expected to change {measure} by {evidence.baseline_effect:+.3f} here;"
        f" this one by {abs(rest):.3f} {'more' if rest >= 0 else 'less'}."
    )


def _track_record_sentence(evidence: Evidence, measure: str) -> str:
    if evidence.track_record is None:
        return "It was never measured as a source in this scenario."
    targets = evidence.track_record_targets
    return (
        f"It changed {measure} by {evidence.track_record:+.3f} on average on {targets} other"
        f" {'target' if targets == 1 else 'targets'}."
    )


def _distance_sentence(evidence: Evidence) -> str:
    if evidence.distance is None:
        return "Its distance is not known: no two comparable fingerprints."
    return (
        f"By {evidence.distance_method} it is number {evidence.distance_rank} of {evidence.known_distances}"
        " known distances (1 is the closest)."
    )
