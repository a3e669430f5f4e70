"""Labels of predictions: the history of a label."""

from uuid import UUID

from lifelong_core.entities.access import Scope
from lifelong_core.entities.labelling import LabelHistory
from lifelong_core.operations.operation import Call, Context, operation


class ShowLabelHistory(Call[LabelHistory]):
    """A prediction."""

    prediction: UUID


@operation(
    "GET",
    "/v1/admin/predictions/{prediction}/labels",
    scope=Scope.READ,
    example=ShowLabelHistory(prediction=UUID("01a20676-ec35-71e3-9541-7358988905de")),
)
def show_label_history(context: Context, call: ShowLabelHistory) -> LabelHistory:
    """Every change of the label of a prediction, oldest first: from what to what, by whom, when."""
    return context.store.labels.named_history(call.prediction)
