"""Suggestions of what to transfer from which task, each with its evidence."""

from pydantic import Field

from lifelong_core.develop.knowledge.entry import Scenario
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
