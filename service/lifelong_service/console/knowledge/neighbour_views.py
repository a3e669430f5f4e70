"""Suggestions of what to transfer, as the page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.entry import Scenario
    from lifelong_core.develop.ranking.suggestion import Evidence, Ranking, Suggestion

BAR_WIDTH = 180
"""Width of the drawing of a gain, in pixels."""
_PADDING = 6

SCENARIOS: dict["Scenario", tuple[str, str]] = {
    "architecture": (
        "Architecture",
        "The target is trained with the network architecture, and its published weights, that did best on the source.",
    ),
    "pretraining": (
        "Pretraining",
        "The network is trained on the images of the source first, then on those of the target. The knowledge base"
        " holds no images: they must come from the contact of the source.",
    ),
    "augmentation": (
        "Augmentation",
        "The target is trained with the augmentation policy that did best on the source.",
    ),
    "co_training": (
        "Co-training",
        "The network is trained on the images of the source and of the target together. The knowledge base holds no"
        " images: they must come from the contact of the source.",
    ),
}
"""Name and meaning of each scenario."""


@dataclass(frozen=True)
class Bar:
    """A gain and its interval around zero; places in pixels."""

    zero: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One suggestion."""

    number: int
    """place in the whole list, from 1"""
    source: str
    gain: str
    low: str
    high: str
    bar: Bar
    is_recommended: bool
    is_positive: bool
    facts: tuple[tuple[str, str, str], ...]
    """name, value and a remark of each piece of evidence"""
    reasons: tuple[str, ...]
    limits: tuple[str, ...]


def rows_of(ranking: "Ranking", first: int, most: int) -> list[Row]:
    """Return the suggestions of one page, drawn to one scale.

    Args:
        ranking: all suggestions, best first.
        first: how many are on earlier pages.
        most: of a page.
    """
    shown = ranking.suggestions[first : first + most]
    low, high = _limits(shown)
    return [
        _row(number, suggestion, low, high, is_recommended=number <= ranking.recommended)
        for number, suggestion in enumerate(shown, first + 1)
    ]


def signed(value: float) -> str:
    """Return a gain as text, with a sign.

    Examples:
        >>> signed(0.01234), signed(-0.0001)
        ('+0.012', '+0.000')
    """
    return f"{value:+z.3f}"


def _limits(suggestions: "Sequence[Suggestion]") -> tuple[float, float]:
    """Return the ends of the scale: all intervals, and zero."""
    low = min((suggestion.low for suggestion in suggestions), default=0.0)
    high = max((suggestion.high for suggestion in suggestions), default=0.0)
    return min(low, 0.0), max(high, 0.0)


def _row(number: int, suggestion: "Suggestion", low: float, high: float, *, is_recommended: bool) -> Row:
    scale = (BAR_WIDTH - 2 * _PADDING) / ((high - low) or 1.0)

    def place(value: float) -> float:
        return round(_PADDING + (value - low) * scale, 1)

    gain = suggestion.expected_gain
    return Row(
        number,
        suggestion.source,
        signed(gain),
        signed(suggestion.low),
        signed(suggestion.high),
        Bar(place(0.0), place(gain), place(suggestion.low), place(suggestion.high)),
        is_recommended,
        gain > 0,
        _facts(suggestion.evidence),
        suggestion.reasons,
        suggestion.limits,
    )


def _facts(evidence: "Evidence") -> tuple[tuple[str, str, str], ...]:
    rank, of = evidence.distance_rank, evidence.known_distances
    targets = evidence.track_record_targets
    return (
        (
            "Distance",
            "not known" if evidence.distance is None else f"{evidence.distance:#.3g}",
            "" if rank is None else f"rank {rank} of {of}",
        ),
        (
            "Track record",
            "not measured" if evidence.track_record is None else signed(evidence.track_record),
            "" if not targets else f"{targets} target{'s' if targets > 1 else ''}",
        ),
        ("Card similarity", f"{evidence.card_similarity:.2f}", ""),
        ("Baseline effect", signed(evidence.baseline_effect), ""),
        ("Outcomes", f"{evidence.outcomes:,}", ""),
    )
