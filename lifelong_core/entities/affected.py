"""Answers about the decisions that a swap affects."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict


class ChangeAnswer(TypedDict):
    """Number of decisions with one change from an old to a new decision."""

    decision: int
    new_decision: int
    count: int
    expected_cost: Annotated[float, Field(description="Summed, in the units of the task's cost matrix.")]


class AffectedFiguresAnswer(TypedDict):
    """Number of decisions of a period that differ under the new head."""

    since: str
    until: str
    predictions: Annotated[int, Field(description="Decisions that were compared.")]
    affected: int
    share: Annotated[float, Field(description="Of the predictions, 0 to 1.")]
    expected_cost: Annotated[
        float,
        Field(
            description="Of the affected decisions as they were answered, less that of the new ones, both as the new"
            " head expects it; summed."
        ),
    ]
    mean_cost: Annotated[float, Field(description="The same for each affected decision.")]
    changes: Annotated[list[ChangeAnswer], Field(description="Most costly first.")]
    groups: Annotated[
        int | None, Field(description="From which the affected predictions come; null: none of them has one.")
    ]
    quarantined: Annotated[int, Field(description="Left out because they cannot be judged.")]
    other_models: Annotated[
        int, Field(description="Of other models in this environment and period; not compared.")
    ]
    gone: Annotated[
        int | None,
        Field(description="Counted earlier and deleted since, by retention or erasure; null: not known."),
    ]
    counted_at: str


class AffectedPredictionAnswer(TypedDict):
    """A prediction whose decision differs under the new head."""

    prediction_id: str
    logged_at: str
    head_version: Annotated[int, Field(description="Of the head that decided.")]
    decision: Annotated[int, Field(description="As it was answered.")]
    label: str
    new_decision: int
    new_label: str
    expected_cost: float
    group: Annotated[str | None, Field(description="Hash of the group; null: it has none.")]
    true_class: Annotated[int | None, Field(description="Where a label has come; else null.")]


class AffectedAnswer(TypedDict):
    """A page of the affected predictions of a cycle, most costly first."""

    cycle: str
    model: str
    environment: str
    head_version: Annotated[int | None, Field(description="That the cycle published; null: none.")]
    activated_at: Annotated[str | None, Field(description="When the head came in force; null: it did not.")]
    figures: AffectedFiguresAnswer
    decisions: Annotated[list[str], Field(description="Names of the decisions, by their numbers.")]
    predictions: list[AffectedPredictionAnswer]
    next: Annotated[
        str | None, Field(description="Value of `after` for the next page; null: this is the last.")
    ]
