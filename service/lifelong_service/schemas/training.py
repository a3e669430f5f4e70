"""Answers about trainings."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.entities.entity import schema_of
from lifelong_core.operations.retrainings import RecipeDocument

ResultDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.develop.training.result:TrainingResult")
]


class TrainingAnswer(TypedDict):
    """How a model was trained."""

    model: Annotated[str, Field(description="name@version")]
    job: Annotated[str, Field(description="The job that trained it, which may be deleted by now.")]
    recipe: Annotated[RecipeDocument, Field(description="What was asked for; it can be sent again.")]
    result: ResultDocument
    report: Annotated[
        bool, Field(description="Whether it was compared with the model that was promoted then.")
    ]
    created_at: str
    created_by: str
