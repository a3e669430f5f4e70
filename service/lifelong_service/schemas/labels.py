"""Labels as requests, and their results."""

from typing import Annotated, Literal, NotRequired
from uuid import UUID

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator
from typing_extensions import TypedDict

from lifelong_core.store.log.records import LabelOutcome
from lifelong_core.values.class_labels import key_form
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.names import Name

MAXIMUM_LABELS = 1000


class Label(RequestDocument):
    """The true class of one prediction, given by its id, or by the id of its request.

    `row` is the index of the prediction in that request; it is optional if there is only one.
    """

    prediction_id: UUID | None = None
    request_id: Annotated[str, AfterValidator(key_form)] | None = Field(None, min_length=1, max_length=128)
    model: str | None = None
    environment: Name | None = None
    row: int | None = Field(None, ge=0)
    label: StrictInt | StrictStr = Field(
        description="Class name, or class index unless a class has a number as its name; a number means its text."
    )
    source: str = Field("", max_length=64, description="Origin of the label, e.g. pathology.")
    propensity: StrictFloat | None = Field(
        None,
        gt=0,
        le=1,
        description="Probability with which the prediction was chosen for labelling; null: unknown, or as stored.",
    )

    @model_validator(mode="after")
    def _names_one_prediction(self) -> "Label":
        if (self.prediction_id is None) == (self.request_id is None):
            raise ValueError("give either prediction_id or request_id")
        return self


class Labels(RequestDocument):
    """Several labels in one request."""

    labels: list[Label] = Field(min_length=1, max_length=MAXIMUM_LABELS)
    partial: StrictBool = Field(
        default=False,
        description="True: a label that is refused gets the outcome `refused`, and the others are stored. False: it"
        " refuses the request, and nothing is stored.",
    )
    dry_run: StrictBool = Field(
        default=False,
        description="True: nothing is stored; the outcomes are those that the labels would have.",
    )


class LabelProblem(TypedDict):
    """Why a label was refused."""

    code: str
    field: str | None
    message: str
    hint: str | None


class LabelAnswer(TypedDict):
    """The result for one label; `prediction_id` is null if no prediction has its request id."""

    prediction_id: str | None
    outcome: LabelOutcome | Literal["refused"]
    error: NotRequired[Annotated[LabelProblem, Field(description="Of a refused label only.")]]


class LabelAnswers(TypedDict):
    """The result for each label, in their order."""

    labels: list[LabelAnswer]
