"""The result of a training without its arrays: how the model was trained and checked."""

from typing import Annotated, Literal

from pydantic import Field

from lifelong_core.develop.training.recipe import AugmentationPolicy, Recipe, SplitName, SubPolicy
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.preprocessing import Preprocessing


class EpochRecord(Frozen):
    """One epoch of a phase."""

    phase: Literal["pretraining", "training"]
    epoch: int = Field(ge=1)
    learning_rate: float
    training_loss: float
    validation_loss: float
    validation_metric: float
    """balanced accuracy"""
    seconds: float


class Parity(Frozen):
    """Largest absolute differences of logits between the exported graph and torch, over images of the test split."""

    images: int = Field(ge=1)
    largest_difference: float = Field(ge=0)
    """on equal inputs"""
    largest_difference_through_service: float = Field(ge=0)
    """where the service's own preprocessing makes the input of the graph, and training's the input of torch"""
    tolerance: float = Field(gt=0)
    """a larger difference refuses the export"""


class SplitFacts(Frozen):
    """Size of one split."""

    images: int = Field(ge=0)
    groups: int | None = Field(default=None, ge=0)
    """None: the data name no groups"""
    counts: tuple[int, ...]
    """images of each class"""


class TrainingResult(FrozenDocument):
    """How a model was trained; the model itself, its calibration set and its test set are artifacts beside it."""

    task: str
    class_names: tuple[str, ...]
    recipe: Recipe
    """as it was given: repeated with equal images and weights on a CPU, it gives an equal model"""
    preprocessing: Preprocessing
    weights: str
    """digest of the trained tensors"""
    initial_weights: str | None
    """digest of the tensors at the start; None: random"""
    splits: dict[SplitName, SplitFacts]
    data: str
    """digest over names, labels, groups and contents of the images: equal for equal data"""
    epochs: tuple[EpochRecord, ...]
    best_epoch: int = Field(ge=1)
    """of the phase training"""
    parity: Parity
    device: str
    versions: dict[str, str]
    """of torch, timm, torchvision, onnxruntime and lifelong"""
    seconds: dict[str, Annotated[float, Field(ge=0)]]
    """by phase"""
    warnings: tuple[str, ...] = ()


class TriedSubPolicy(Frozen):
    """A candidate with its score in the last round that it reached."""

    steps: SubPolicy
    """each applied to every image when it was scored"""
    loss: float
    """on augmented held-out images: mean cross-entropy within each class, averaged over the classes"""
    images: int = Field(ge=1)
    """held-out images of that round"""


class SearchOutcome(FrozenDocument):
    """An augmentation policy, and how it was found."""

    policy: AugmentationPolicy
    """empty: every candidate costs the model too much of what it knows"""
    recipe: Recipe
    """of the model that scored the candidates"""
    tried: tuple[TriedSubPolicy, ...]
    """those of the last round first, and within a round those of the lowest loss"""
    loss_of_unchanged: float
    """of the model on the same held-out images without augmentation"""
    largest_loss: float
    """that a sub-policy of the policy may have"""
    images: int = Field(ge=1)
    """held-out images in the last round"""
    data: str
    """digest of the images of the task"""
    device: str
    seconds: dict[str, Annotated[float, Field(ge=0)]]
    """by phase"""
    warnings: tuple[str, ...] = ()
