"""Results of trainings that never ran, for tests."""

from lifelong_core.develop.training.recipe import SPLITS, Recipe
from lifelong_core.develop.training.result import EpochRecord, Parity, SplitFacts, TrainingResult
from lifelong_core.values.preprocessing import Preprocessing

CLASSES = ("healthy", "benign", "malignant")


def make_result(recipe: Recipe, *, images: int = 60, seconds: float = 1.0, epochs: int = 3) -> TrainingResult:
    """A result with so many training images and epochs of so many seconds."""
    facts = SplitFacts(images=images, counts=(images // 3,) * 3)
    return TrainingResult(
        task="lesions",
        class_names=CLASSES,
        recipe=recipe,
        preprocessing=Preprocessing(),
        weights="1" * 64,
        initial_weights=None,
        splits=dict.fromkeys(SPLITS, facts),
        data="2" * 64,
        epochs=tuple(
            EpochRecord(
                phase="training",
                epoch=number,
                learning_rate=0.001,
                training_loss=1.0 / number,
                validation_loss=1.2 / number,
                validation_metric=0.5 + 0.1 * number,
                seconds=seconds,
            )
            for number in range(1, epochs + 1)
        ),
        best_epoch=epochs,
        parity=Parity(
            images=9, largest_difference=1e-6, largest_difference_through_service=2e-6, tolerance=1e-4
        ),
        device="cpu",
        versions={"torch": "2.13.0"},
        seconds={"reading": 1.0, "training": seconds * epochs},
    )
