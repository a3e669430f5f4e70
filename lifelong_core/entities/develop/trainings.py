"""How models were trained."""

from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.entities.entity import Entity, Moment, read_kept, schema_of

RecipeDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.develop.training.recipe:Recipe")
]
ResultDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.develop.training.result:TrainingResult")
]


@dataclass(frozen=True, kw_only=True)
class TrainingSummary(Entity):
    """A training without its result."""

    model: str
    """name@version"""
    task: str
    job: UUID
    """the job that trained it, which may be deleted by now"""
    recipe: RecipeDocument
    """what was asked for; it can be sent again"""
    report: bool
    """whether it was compared with the model that was promoted then"""
    created_at: Moment
    created_by: str


@dataclass(frozen=True, kw_only=True)
class TrainingAnswer(TrainingSummary):
    """How a model was trained."""

    result: ResultDocument


@dataclass(frozen=True, kw_only=True)
class StoredTraining:
    """A row of `trainings`; the arrays and documents are artifacts."""

    model_id: int
    job_id: UUID
    """the job that trained it, which may be deleted by now"""
    recipe_document: str = field(repr=False)
    """`recipe` as JSON text, unchanged"""
    result: str
    """digest of the artifact: a `TrainingResult` as JSON"""
    test_set: str
    """digest of the artifact: logits, labels and names of the images of the test split, never images.

    With a report it is `PairedSet.to_bytes`, which also holds the logits of the model that was promoted then; else
    `LabelledSet.to_bytes`."""
    report: str | None
    """digest of the artifact: a `PromotionReport` as JSON; None: the task had no other promoted model"""
    report_page: str | None
    """digest of its HTML page"""
    created_at: Moment
    created_by: str

    @property
    def recipe(self) -> Recipe:
        """The recipe that was asked for.

        Raises:
            UnavailableError: the document was changed, or a newer version wrote it.
        """
        name = f"the recipe of the model {self.model_id}"
        return read_kept(Recipe.from_json, self.recipe_document, name=name)

    @property
    def artifacts(self) -> set[str]:
        """Digests of the artifacts."""
        named = (self.result, self.test_set, self.report, self.report_page)
        return {digest for digest in named if digest is not None}
