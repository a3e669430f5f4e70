"""What a search for an augmentation policy gives."""

from typing import Annotated

from pydantic import Field

from lifelong_core.develop.training.policy import AugmentationPolicy, SubPolicy
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.values.documents import Frozen, FrozenDocument


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
