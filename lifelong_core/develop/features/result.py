"""The result of fingerprinting: fingerprints, facts of the task, and an account of the images that were read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from lifelong_core.develop.features.sampling import Survey
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.entry import TaskCard
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.errors import InvalidInputError


class UnreadableImage(Frozen):
    """An image that could not be read."""

    name: str
    problem: str


class FingerprintReport(FrozenDocument):
    """How fingerprints were made."""

    images: int = Field(ge=1)
    """in the source"""
    passed_over: int = Field(ge=0)
    """files that are no images"""
    sampled: int = Field(ge=1)
    """images that were chosen at random"""
    read: int = Field(ge=1)
    """images in the fingerprint: sampled ones that are readable"""
    unreadable: int = Field(ge=0)
    unreadable_examples: tuple[UnreadableImage, ...] = ()
    """the first of them"""
    seed: int
    extractor: str
    """digest of the extractor reference"""
    architecture: str
    device: str
    seconds: float = Field(ge=0)


class TaskFacts(FrozenDocument):
    """Facts of the task that its images show; they are copied to the task card.

    Counts are of all images, sizes and dimension of the sample.
    """

    samples: int = Field(ge=1)
    class_sizes: dict[str, int] | None = None
    """images of each class; None: not every image has a class"""
    smallest_pixels: int = Field(ge=1)
    largest_pixels: int = Field(ge=1)
    """width times height"""
    intrinsic_dimension: float | None = Field(default=None, gt=0)
    """of the features, by maximum likelihood; None: too few different images"""

    @property
    def classes(self) -> int | None:
        """Number of classes; None: not known."""
        return None if self.class_sizes is None else len(self.class_sizes)

    @property
    def imbalance(self) -> float | None:
        """Images of the largest class divided by those of the smallest; None: not known."""
        return (
            None if not self.class_sizes else max(self.class_sizes.values()) / min(self.class_sizes.values())
        )

    def card(
        self,
        name: str,
        *,
        classes: int | None = None,
        dataset: str | None = None,
        keywords: Sequence[str] = (),
        modality: str | None = None,
    ) -> TaskCard:
        """A task card with these facts.

        Args:
            name: of the task.
            classes: their number, where the images have no labels.
            dataset: that the images are from.
            keywords: of the task's description.
            modality: such as dermoscopy.

        Raises:
            InvalidInputError: the number of classes is neither known nor given, or is below 2.
        """
        classes = classes or self.classes
        if classes is None:
            raise InvalidInputError(
                "the images have no labels; expected the number of classes.", field="classes"
            )
        return TaskCard.from_document(
            {
                "name": name,
                "dataset": dataset,
                "keywords": list(keywords),
                "modality": modality,
                "classes": classes,
                "samples": self.samples,
                "imbalance": self.imbalance or 1.0,
                "smallest_pixels": self.smallest_pixels,
                "largest_pixels": self.largest_pixels,
                "intrinsic_dimension": self.intrinsic_dimension,
            }
        )


@dataclass(frozen=True)
class TaskFingerprints:
    """The fingerprints of one task.

    Attributes:
        fingerprints: by kind.
        facts: of the task.
        report: how they were made.
    """

    fingerprints: Mapping[str, Fingerprint]
    facts: TaskFacts
    report: FingerprintReport

    @property
    def fingerprint(self) -> Fingerprint:
        """The only fingerprint, or the first one."""
        return next(iter(self.fingerprints.values()))


def facts_of(
    survey: Survey, *, smallest_pixels: int, largest_pixels: int, intrinsic_dimension: float | None
) -> TaskFacts:
    """The facts, with classes only if every image has one."""
    return TaskFacts(
        samples=survey.images,
        class_sizes=survey.classes if survey.is_labelled else None,
        smallest_pixels=smallest_pixels,
        largest_pixels=largest_pixels,
        intrinsic_dimension=intrinsic_dimension,
    )
