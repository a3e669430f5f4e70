"""Answers about trials and promotions."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.store.cycles.records import Outcome
from lifelong_core.store.rollouts.records import PromotionReason, RolloutOutcome, Stage


class TrialAnswer(TypedDict):
    """The trial of a candidate; without `ended_at` it goes on."""

    task: str
    model: Annotated[str, Field(description="The candidate, name@version.")]
    stage: Stage
    share: Annotated[float, Field(description="Of the requests without a version; 0 for a shadow.")]
    started_at: str
    started_by: str
    changed_at: Annotated[str, Field(description="Time of the latest change of stage or share.")]
    ended_at: str | None
    ended_by: str | None
    outcome: RolloutOutcome | None


class StartedTrialAnswer(TrialAnswer):
    """A trial after its start or change."""

    fitted_heads: Annotated[
        list[str], Field(description="Environments for which the candidate got a head of its own.")
    ]
    serving: Annotated[str, Field(description="A sentence about the workers that have loaded it.")]


class ClassEstimate(TypedDict):
    """The estimated prevalence of one class with its interval."""

    estimate: float
    low: float
    high: float


class TrialCycle(TypedDict):
    """The newest cycle of a population."""

    id: str
    outcome: Outcome
    finished_at: str
    samples: int
    prevalence: Annotated[
        dict[str, ClassEstimate] | None, Field(description="By class; null: the cycle estimated none.")
    ]


class TrialLabels(TypedDict):
    """The newest labelled decisions of a population."""

    samples: int
    accuracy: float
    expected_cost: float


class TrialPopulationAnswer(TypedDict):
    """One of the two models in one environment."""

    model: str
    role: str
    environment: str
    cycle: TrialCycle | None
    labelled: TrialLabels | None


class TrialState(TypedDict):
    """The trial of a task that goes on, with the populations of the promoted model and the candidate."""

    task: str
    promoted_model: str | None
    trial: TrialAnswer | None
    populations: list[TrialPopulationAnswer]


class PromotionAnswer(TypedDict):
    """One change of the promoted model of a task; sequence counts up from 1."""

    sequence: int
    model: Annotated[
        str, Field(description="The model that was promoted, name@version; empty: it was removed.")
    ]
    reason: PromotionReason
    restores: Annotated[
        int | None, Field(description="The promotion that a roll-back of this one restores; null: none.")
    ]
    promoted_at: str
    promoted_by: str


class PromotionList(TypedDict):
    """All promotions of a task, oldest first."""

    task: str
    rollback_model: Annotated[
        str | None, Field(description="The model that a roll-back restores now; null: there is none.")
    ]
    promotions: list[PromotionAnswer]
