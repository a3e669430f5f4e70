"""Suggestions of what to transfer from which task, each with its evidence."""

from pydantic import Field

from lifelong_core.develop.knowledge.entry import KnowledgeEntry, Scenario
from lifelong_core.develop.knowledge.transferable import (
    best_architecture,
    searched_policy,
    transferable_without_images,
)
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.names import Name


class Evidence(Frozen):
    """What a suggestion rests on."""

    distance: float | None = None
    """of the fingerprints; None: not known"""
    distance_method: str | None = None
    distance_rank: int | None = Field(default=None, ge=1)
    """1: the closest of the sources with a known distance"""
    known_distances: int = Field(default=0, ge=0)
    measured_gain: float | None = None
    """of this very transfer to this target; None: not measured"""
    track_record: float | None = None
    """mean gain of this source on other targets in this scenario; None: never measured"""
    track_record_targets: int = Field(default=0, ge=0)
    card_similarity: float = Field(ge=0, le=1)
    """1: equal cards"""
    baseline_effect: float
    """part of the expected gain that an average source would bring: some targets gain from every source"""
    outcomes: int = Field(ge=0)
    """measured transfers that the ranker was fitted on in this scenario"""


class Neighbour(Frozen):
    """A source by its similarity alone: nothing measured says whether a transfer from it helps."""

    source: Name
    distance: float | None = None
    card_similarity: float = Field(ge=0, le=1)


class Suggestion(Frozen):
    """A source task, and the gain to expect from it."""

    source: Name
    expected_gain: float
    """of the measure, against training without transfer"""
    low: float
    high: float
    """limits of the prediction interval of the gain (mean of the seeds), at the confidence of the ranking"""
    evidence: Evidence
    reasons: tuple[str, ...]
    """the evidence as sentences"""
    limits: tuple[str, ...] = ()
    """what of this source cannot be transferred here, such as images of another institution"""


class Ranking(FrozenDocument):
    """Source tasks for one target and one scenario, best first."""

    target: Name
    scenario: Scenario
    measure: str
    strategy: str
    confidence: float = Field(gt=0, lt=1)
    """of the intervals"""
    suggestions: tuple[Suggestion, ...]
    """sources with their expected gain, also below zero; empty where measured transfers are too few"""
    recommended: int = Field(ge=0)
    """how many of the first suggestions are expected to be better than no transfer"""
    neighbours: tuple[Neighbour, ...] = ()
    """the closest tasks, where measured transfers are too few for suggestions"""
    declined: str | None = None
    """why no source is recommended; None: at least one is"""
    ranker: str | None = None
    """digest of the fitted ranker; None: the strategy needs none"""


def conclude(ranking: Ranking) -> str:
    """The transfer that is expected to help, with its certainty, or why none is, as a sentence."""
    if ranking.declined is not None:
        return ranking.declined
    count, among = ranking.recommended, len(ranking.suggestions)
    sure = sum(one.low > 0 for one in ranking.suggestions[:count])
    they, them = ("is", "it") if count == 1 else ("are", "one of them")
    certainty = f"For {sure} of them, even" if sure < count else "Even"
    return (
        f"{count} of {among} source task{'s' if among > 1 else ''} {they} expected to help: with {them},"
        f" {ranking.target} is expected to reach a higher {ranking.measure} than without transfer."
        + (
            f" {certainty} the lower limit of the prediction interval is above zero."
            if sure
            else " But every prediction interval includes zero: a transfer may also do harm."
        )
    )


def find_limits(source: KnowledgeEntry, scenario: Scenario) -> tuple[str, ...]:
    """Sentences on scenarios of a source for which the knowledge base lacks the content."""
    name, contact = source.card.name, f" Contact: {source.contact}." if source.contact else ""
    if scenario in ("pretraining", "co_training"):
        instead = transferable_without_images(source)
        rest = f" {instead}" if instead else ""
        return (f"This needs images of {name}, which a knowledge base does not hold.{rest}{contact}",)
    if scenario == "architecture" and best_architecture(source) is None:
        return (f"The knowledge base names no architecture that {name} was trained with.{contact}",)
    if scenario == "augmentation" and searched_policy(source) is None:
        return (f"No augmentation policy was searched for {name}.{contact}",)
    return ()


def explain(evidence: Evidence, expected_gain: float, measure: str) -> tuple[str, ...]:
    """Sentences for people, the most important first."""
    return (
        _gain_sentence(evidence, expected_gain, measure),
        _track_record_sentence(evidence, measure),
        _distance_sentence(evidence),
        f"The task cards agree to {evidence.card_similarity:.0%}.",
        f"This rests on {evidence.outcomes:,} measured transfers in this scenario.",
    )


def _gain_sentence(evidence: Evidence, expected_gain: float, measure: str) -> str:
    if evidence.measured_gain is not None:
        return (
            f"This transfer was measured: it changed {measure} by {evidence.measured_gain:+.3f}, which corrects the"
            f" prediction; an average source is expected to change it by {evidence.baseline_effect:+.3f}."
        )
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
