"""One task of a knowledge base: its card, its trainings, published distances, and transfers between tasks as arrays."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, JsonValue, model_validator

from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.names import Name

Scenario: TypeAlias = Literal["architecture", "pretraining", "augmentation", "co_training"]
"""What is transferred from a source task (thesis, section 5.1.3)."""
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)

Keyword: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
# One entry is ranked with all others: its numbers must fit into float64 sums, its lists into arrays of all tasks.
_MOST = 10**12
Count: TypeAlias = Annotated[int, Field(ge=1, le=_MOST)]
Measured: TypeAlias = Annotated[float, Field(ge=-_MOST, le=_MOST)]
Repetitions: TypeAlias = Annotated[tuple[Measured, ...], Field(min_length=1, max_length=100)]
ShortName: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]


class TaskCard(FrozenDocument):
    """Facts of a task that can be known without a fingerprint; none reveals an image."""

    name: Name
    """unique in a knowledge base"""
    dataset: Text | None = None
    """tasks of one data set share images, so that none is a source of the other"""
    keywords: tuple[Keyword, ...] = Field(default=(), max_length=100)
    """of the task's description, such as modality, anatomy and entities of interest"""
    modality: Text | None = None
    classes: int = Field(ge=2, le=1_000_000)
    samples: Count
    """images for training and test together"""
    imbalance: float = Field(default=1.0, ge=1, le=_MOST)
    """samples of the largest class divided by those of the smallest"""
    smallest_pixels: Count | None = None
    largest_pixels: Count | None = None
    """width times height of the smallest and of the largest image"""
    intrinsic_dimension: float | None = Field(default=None, gt=0, le=_MOST)
    """of the data, by the estimator of Pope et al. (2021)"""


def dataset_of(card: TaskCard) -> str:
    """Data set of a task, in any case of letters the same; a task without one is a data set of its own."""
    return f"task {card.name}" if card.dataset is None else card.dataset.strip().casefold()


class Training(Frozen):
    """One way to train a task, and how well it did; each seed gives one value of each measure."""

    scenario: Scenario | None = None
    """None: the baseline, trained without transfer"""
    source: Name | None = None
    """task that the transfer came from; None for the baseline"""
    training_samples: Count | None = None
    """None: all"""
    architecture: Text | None = None
    """name of a timm model"""
    hyperparameters: dict[str, JsonValue] = Field(default_factory=dict)
    augmentation: dict[str, JsonValue] | None = None
    """augmentation policy"""
    performance: dict[ShortName, Repetitions] = Field(min_length=1, max_length=50)
    """by measure (an acronym of `METRICS`, such as BA), one value for each seed"""

    @model_validator(mode="after")
    def _check_source(self) -> "Training":
        if (self.scenario is None) != (self.source is None):
            raise ValueError("scenario and source are named together, or neither is")
        return self


class KnowledgeEntry(FrozenDocument):
    """What a knowledge base holds of one task, without its fingerprints."""

    card: TaskCard
    trainings: tuple[Training, ...] = ()
    """with this task as the target"""
    distances: dict[str, dict[Name, float]] = Field(default_factory=dict)
    """by method and source, to this task as the target: published distances, used where fingerprints are missing"""
    licence: Text | None = None
    contact: Text | None = None


@dataclass(frozen=True, eq=False)
class TransferOutcomes(ArrayValue):
    """Performance of T tasks with and without transfer, and the distances between them.

    S scenarios, M measures, R repetitions (seeds), D distances. nan: not measured, or not a legal pair.
    """

    cards: tuple[TaskCard, ...]
    """T, in the order of the arrays"""
    scenarios: tuple[Scenario, ...]
    measures: tuple[str, ...]
    """positively oriented, in [0, 1]"""
    outcomes: Floats
    """(S, M, R, T, T): scenario, measure, repetition, source, target"""
    baseline: Floats
    """(M, R, T): without transfer"""
    methods: tuple[str, ...]
    """fingerprinting methods"""
    distances: Floats
    """(D, T, T): method, source, target; the lower, the closer"""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in the order of the arrays."""
        return tuple(card.name for card in self.cards)
