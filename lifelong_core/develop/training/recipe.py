"""How to train a classifier, as a value that can be stored, shown, repeated and exported."""

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, model_validator

from lifelong_core.develop.knowledge.entry import Scenario
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.names import Name

SplitName: TypeAlias = Literal["training", "validation", "calibration", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)

SOURCE_DATA_SCENARIOS: tuple[Scenario, ...] = ("pretraining", "co_training")
"""Scenarios that train on images of the source task, which must be at hand."""

Operation: TypeAlias = Literal[
    "identity",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
    "rotate",
    "brightness",
    "contrast",
    "saturation",
    "sharpness",
    "posterize",
    "solarize",
    "autocontrast",
    "equalize",
    "gaussian_blur",
    "horizontal_flip",
    "vertical_flip",
]
"""Operations of torchvision's v2 transforms; none of them changes the class of most medical images, but flips and
rotations do where left and right, or up and down, matter."""


class Shares(Frozen):
    """Shares of the cases in each split; they sum to 1.

    The calibration split serves nothing but calibration: early stopping uses the validation split, which is too
    optimistic for calibration afterwards.
    """

    training: float = Field(default=0.6, gt=0, lt=1)
    validation: float = Field(default=0.1, gt=0, lt=1)
    calibration: float = Field(default=0.15, gt=0, lt=1)
    test: float = Field(default=0.15, gt=0, lt=1)

    @model_validator(mode="after")
    def _sum_to_one(self) -> "Shares":
        total = self.training + self.validation + self.calibration + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"expected shares that sum to 1, got {total:g}")
        return self

    def by_split(self) -> dict[SplitName, float]:
        """The shares by the names of the splits."""
        return {
            "training": self.training,
            "validation": self.validation,
            "calibration": self.calibration,
            "test": self.test,
        }


class Optimisation(Frozen):
    """How the weights are found; the defaults are those of the thesis (section 6.1.4) but for the batch size."""

    epochs: Annotated[int, Field(ge=1, le=10_000)] = 40
    """largest number"""
    batch_size: Annotated[int, Field(ge=2, le=100_000)] = 64
    learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    """at the start; None: found by a range test (Smith, 2017)"""
    plateau_patience: Annotated[int, Field(ge=0)] = 5
    """epochs without a lower validation loss before the learning rate is reduced"""
    plateau_factor: float = Field(default=0.1, gt=0, lt=1)
    patience: Annotated[int, Field(ge=1)] = 7
    """epochs without a lower validation loss before training stops"""
    sampling: Literal["balanced", "natural", "prevalence"] = "balanced"
    """of the training cases: every class equally often, as they are, or in the shares of `target_prevalence`"""
    target_prevalence: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = None
    """shape (C,), with the sampling `prevalence` only"""
    weight_decay: float = Field(default=0.0, ge=0, le=10)
    mixed_precision: bool = True
    """on a GPU that has it; without effect on a CPU"""

    @model_validator(mode="after")
    def _check_prevalence(self) -> "Optimisation":
        if (self.sampling == "prevalence") != (self.target_prevalence is not None):
            raise ValueError("target_prevalence is given with the sampling prevalence, and only then")
        if self.target_prevalence is not None and abs(sum(self.target_prevalence) - 1) > 1e-6:
            raise ValueError("expected a target_prevalence that sums to 1")
        return self


class Step(Frozen):
    """One operation of a sub-policy."""

    operation: Operation
    probability: float = Field(ge=0, le=1)
    magnitude: float = Field(default=0.0, ge=0, le=1)
    """0: no effect, 1: the largest effect; the direction is random where there are two. Unused by operations without
    a strength."""


SubPolicy: TypeAlias = Annotated[tuple[Step, ...], Field(max_length=20)]
"""Steps that are applied one after another."""


class AugmentationPolicy(FrozenDocument):
    """For each image one sub-policy is drawn at random, and its steps are applied in order."""

    sub_policies: Annotated[tuple[SubPolicy, ...], Field(max_length=100)] = ()
    """empty: images are not changed"""
    searched_on: str | None = None
    """task that the policy was searched for; None: it was written by hand"""


LIGHT = AugmentationPolicy(
    sub_policies=((Step(operation="horizontal_flip", probability=0.5),),),
)
"""The light augmentation of the thesis (section 6.1.4), beside the random crop that every training applies."""


class Recipe(FrozenDocument):
    """How to train a classifier of a task.

    One scenario transfers one thing from a source task (thesis, section 5.1.3), everything else stays as it is:

    - architecture: `architecture` and `initial_weights` are those that did best on the source.
    - pretraining: a first phase on the images of the source, then a new classifier on those of the target.
    - augmentation: `augmentation` is the policy that was searched for the source.
    - co_training: a shared backbone with one head for each task, equal sampling and loss weights.

    Without a scenario it is the uninformed baseline.
    """

    scenario: Scenario | None = None
    source: Name | None = None
    """task of the knowledge base; named with a scenario, and only then"""
    architecture: Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "resnet34"
    """name of a timm model"""
    initial_weights: Literal["pretrained", "random"] = "pretrained"
    """pretrained: `{architecture}.safetensors` or `.pth` in `LIFELONG_TRAINING_WEIGHTS`, else timm's own from the hub
    or its cache"""
    colour: Literal["rgb", "grey"] = "rgb"
    image_size: Annotated[int, Field(ge=8, le=4096)] | None = None
    """edge of the model's square input in pixels; None: that of timm's data config"""
    augmentation: AugmentationPolicy = LIGHT
    optimisation: Optimisation = Optimisation()
    shares: Shares = Shares()
    """unused where the data name the split of each image"""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0

    @model_validator(mode="after")
    def _check_source(self) -> "Recipe":
        if (self.scenario is None) != (self.source is None):
            raise ValueError("scenario and source are named together, or neither is")
        return self

    @property
    def needs_source_data(self) -> bool:
        """Whether it trains on images of the source task."""
        return self.scenario in SOURCE_DATA_SCENARIOS
