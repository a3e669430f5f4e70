"""Architecture and augmentation policy of an entry: another task can be trained with them, without an image of the
source."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from lifelong_core.develop.knowledge.entry import KnowledgeEntry, Training
from lifelong_core.develop.training.recipe import AugmentationPolicy
from lifelong_core.metrics import METRICS
from lifelong_core.values.errors import InvalidInputError

INITIAL_WEIGHTS = "initial_weights"
"""Key of `Training.hyperparameters`: pretrained or random."""


@dataclass(frozen=True)
class Architecture:
    """A timm model that a task was trained with, and where its training began."""

    name: str
    initial_weights: Literal["pretrained", "random"]
    performance: float
    """mean of the seeds"""


def best_architecture(entry: KnowledgeEntry, measure: str = "BA") -> Architecture | None:
    """The architecture of the training that did best; None: no training names one.

    Args:
        entry: of the task.
        measure: by which trainings are compared, an acronym; where none has it, the one that most trainings have.

    Examples:
        >>> from lifelong_core.develop.knowledge.entry import TaskCard
        >>> trainings = [
        ...     Training(architecture=name, performance={"BA": (score,)})
        ...     for name, score in (("resnet18", 0.7), ("resnet34", 0.8))
        ... ]
        >>> card = TaskCard(name="skin", classes=2, samples=9)
        >>> best_architecture(KnowledgeEntry(card=card, trainings=tuple(trainings))).name
        'resnet34'
    """
    named = [one for one in entry.trainings if one.architecture is not None]
    counts = Counter(name for one in named for name in one.performance)
    if not counts:
        return None
    compared = measure if measure in counts else counts.most_common(1)[0][0]
    sign = -1 if compared in METRICS and METRICS[compared].orientation == "down" else 1
    return max(
        (_architecture(one, compared) for one in named if compared in one.performance),
        key=lambda one: sign * one.performance,
    )


def searched_policy(entry: KnowledgeEntry) -> AugmentationPolicy | None:
    """The augmentation policy that was searched for the task; the newest one, None: none was."""
    for training in reversed(entry.trainings):
        if training.augmentation is None or training.augmentation.get("searched_on") != entry.card.name:
            continue
        try:
            return AugmentationPolicy.from_document(training.augmentation)
        except InvalidInputError:  # of a version with other operations
            continue
    return None


def transferable_without_images(entry: KnowledgeEntry, measure: str = "BA") -> str | None:
    """What can be transferred from the task without its images, as a sentence; None: nothing."""
    name, found = entry.card.name, list[str]()
    if (architecture := best_architecture(entry, measure)) is not None:
        found.append(f"the architecture {architecture.name} (architecture:{name})")
    if searched_policy(entry) is not None:
        found.append(f"its augmentation policy (augmentation:{name})")
    return f"Without them, it can give {' and '.join(found)}." if found else None


def _architecture(training: Training, measure: str) -> Architecture:
    values = training.performance[measure]
    is_random = training.hyperparameters.get(INITIAL_WEIGHTS) == "random"
    return Architecture(
        training.architecture or "",
        "random" if is_random else "pretrained",
        math.fsum(values) / len(values),
    )
