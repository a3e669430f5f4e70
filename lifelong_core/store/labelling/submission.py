"""Requests for a labelling plan: checked, and submitted as a job."""

from typing import Annotated, Self

from pydantic import Field

from lifelong_core.entities.jobs import Job
from lifelong_core.entities.registry import Model
from lifelong_core.store.store import Store
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import ConflictError

KIND = "labelling_plan"
"""Kind of the job."""
LARGEST_SIZE = 10_000
"""Largest number of labels of a plan."""
LARGEST_WINDOW = 20_000
"""Largest number of predictions in the window of a plan; they are read row by row."""


class NewLabellingPlan(FrozenDocument):
    """What is wanted of a labelling plan; what is not given is as for cycles."""

    size: Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
    """number of labels wanted"""
    window_samples: Annotated[int, Field(ge=1, le=LARGEST_WINDOW)] | None = None
    """largest number of predictions in the window, the newest ones; None: the setting, at most LARGEST_WINDOW"""
    window_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """largest age of a prediction in the window; None: the setting"""


class LabellingPayload(NewLabellingPlan):
    """Payload of the job."""

    model: str
    """reference, name@version"""
    environment: str

    @classmethod
    def of(cls, asked: NewLabellingPlan, model: Model, environment: str) -> Self:
        """The payload for a population."""
        return cls(model=model.reference, environment=environment, **asked.model_dump())


def submit_labelling_plan(
    store: Store, reference: str, environment: str, asked: NewLabellingPlan, *, actor: str
) -> Job:
    """Submit the job that chooses which predictions of a population to label.

    Args:
        store: of the population.
        reference: its model.
        environment: its environment.
        asked: number of labels, and the window.
        actor: name for the audit log.

    Raises:
        NotFoundError: there is no such model or environment.
        ConflictError: the model has no calibration set.
    """
    payload = labelling_payload(store, reference, environment, asked)
    return store.jobs.submit(KIND, payload.to_document(), actor=actor)


def labelling_payload(
    store: Store, reference: str, environment: str, asked: NewLabellingPlan
) -> LabellingPayload:
    """The payload of the job; parameters and errors as `submit_labelling_plan`."""
    model = store.models.get(reference)
    name = store.environments.get(environment).name
    if model.calibration_set_id is None:
        raise ConflictError(
            f"{model.reference} has no calibration set, so nothing is known of its errors.",
            field="model",
            hint=f"Calibrate it: `{model.calibration_command}`.",
        )
    return LabellingPayload.of(asked, model, name)
