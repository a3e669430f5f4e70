"""Answers about proposed retrainings."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.deploy.adaptation.retraining import RetrainingReason
from lifelong_core.store.proposals.records import ProposalState


class MissedFigure(TypedDict):
    """A figure whose whole interval is on the wrong side of its threshold."""

    metric: Annotated[
        str, Field(description="assumption_p_value: of the test that only the prevalence has changed.")
    ]
    class_index: int | None
    value: float
    low: Annotated[float | None, Field(description="Ends of the interval; null: it has none.")]
    high: float | None
    threshold: float


class ProposalDetails(TypedDict):
    """What the monitor saw."""

    missed: list[MissedFigure]
    since: str
    cycles: Annotated[
        list[str], Field(description="Cycles that count for the first figure, each with data of its own.")
    ]
    look_first: Annotated[str, Field(description="What to look at before a retraining.")]


class ProposalAnswer(TypedDict):
    """A proposed retraining; it is open until a person decides."""

    id: str
    task: str
    model: Annotated[str, Field(description="name@version")]
    environment: str
    reason: RetrainingReason
    state: ProposalState
    details: ProposalDetails
    proposed_at: str
    fine_at: Annotated[
        str | None,
        Field(description="When a later cycle found the reason gone; it is not proposed again before."),
    ]
    decided_at: str | None
    decided_by: str | None
    decision_reason: Annotated[str | None, Field(description="Of a dismissal.")]
    job: Annotated[str | None, Field(description="The retraining that was started for it.")]
    command: Annotated[str, Field(description="Starts a retraining of the task.")]


class ProposalList(TypedDict):
    """Proposals, newest first."""

    proposals: list[ProposalAnswer]
