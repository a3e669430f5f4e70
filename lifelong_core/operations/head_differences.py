"""Two heads compared in words, in numbers, and by their decisions about recent predictions."""

from typing import Annotated, cast

from pydantic import Field

from lifelong_core.deploy.adaptation.affected_decisions import find_affected
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.head_wording import describe_difference, describe_head, parameter_changes
from lifelong_core.entities.access import Scope
from lifelong_core.entities.affected import ChangeAnswer
from lifelong_core.entities.head_differences import (
    ChangedDecision,
    DecisionSample,
    HeadDifference,
    ParameterChange,
)
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model
from lifelong_core.operations.cycles import CycleReference
from lifelong_core.operations.heads import HeadVersion
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.store import Store, logged_at
from lifelong_core.store.log.identifiers import EPOCH
from lifelong_core.values.errors import ConflictError
from lifelong_core.values.names import Name

MOST_SHOWN = 20
"""Changed predictions in an answer."""
_EXAMPLE = "01a20676-ec35-71e3-9541-7358988905de"

Limit = Annotated[int, Field(ge=0, le=10_000, description="Newest predictions whose decisions are compared.")]


class DiffHeads(Call[HeadDifference]):
    """Two heads of a model, and the environment whose predictions are compared."""

    model: ModelReference
    version: HeadVersion
    other: HeadVersion
    environment: Annotated[
        Name | None, Field(description="Compare the decisions about its newest predictions.")
    ] = None
    limit: Limit = 1000


class DiffProposal(Call[HeadDifference]):
    """A cycle that wanted another head."""

    cycle: CycleReference
    limit: Limit = 1000


@operation(
    "GET",
    "/v1/admin/models/{model}/heads/{version}/diff/{other}",
    scope=Scope.READ,
    example=DiffHeads(model="resnet@2", version=1, other=2, environment="clinic-a"),
)
def diff_heads(context: Context, call: DiffHeads) -> HeadDifference:
    """How the head `other` differs from the head `version`: in words, in numbers, and in decisions.

    With an environment, both heads decide about its newest predictions; the answer counts the decisions that differ and
    lists some of them.
    """
    store = context.store
    model = store.models.get(call.model)
    environment = None if call.environment is None else store.environments.get(call.environment).name
    before, after = (store.heads.get(call.model, version).head for version in (call.version, call.other))
    return _difference(
        store, model, before, after, (call.version, call.other), environment=environment, limit=call.limit
    )


@operation(
    "GET", "/v1/admin/cycles/{cycle}/diff", scope=Scope.READ, example=DiffProposal(cycle=_EXAMPLE, limit=100)
)
def diff_proposal(context: Context, call: DiffProposal) -> HeadDifference:
    """How the head that a cycle proposed or published differs from the head that it judged.

    Both heads decide about the newest predictions of the population, as for two versions of a head. If the judged head
    is damaged, the answer says so and compares nothing. Status 409 if the cycle wanted no other head.
    """
    store = context.store
    cycle = store.cycles.find(call.cycle)
    model = next(model for model in store.models.list() if model.id == cycle.model_id)
    version, after = cycle.published_version, cycle.proposal
    if version is not None:
        after = store.heads.get(model.reference, version).head
    if after is None:
        raise ConflictError(
            f"the cycle ended in {cycle.effect!r}: it proposed and published no other head.",
            field="cycle",
            hint="List the proposals: `lifelong heads proposals`.",
        )
    before = store.heads.some(model.reference, [cycle.head_version]).get(cycle.head_version)
    if not isinstance(before, HeadRecord):
        return HeadDifference(
            model=model.reference,
            before_version=cycle.head_version,
            after_version=version,
            before_text="is damaged",
            after_text=describe_head(after),
            sentences=[describe_damage(cycle.head_version)],
            parameters=[],
            decisions=None,
        )
    return _difference(
        store,
        model,
        before.head,
        after,
        (cycle.head_version, version),
        environment=cycle.environment,
        limit=call.limit,
    )


def describe_damage(version: int) -> str:
    """Why no head can be compared with a damaged one."""
    return f"Head {version} is damaged: nothing can be compared with it."


def _difference(
    store: Store,
    model: Model,
    before: PostProcessingHead,
    after: PostProcessingHead,
    versions: tuple[int, int | None],
    *,
    environment: str | None,
    limit: int,
) -> HeadDifference:
    is_comparable = environment is not None and before.costs.shape == after.costs.shape
    return HeadDifference(
        model=model.reference,
        before_version=versions[0],
        after_version=versions[1],
        before_text=describe_head(before),
        after_text=describe_head(after),
        sentences=describe_difference(before, after),
        parameters=[
            ParameterChange(name=name, before=old, after=new)
            for name, (old, new) in parameter_changes(before, after).items()
        ],
        decisions=_decisions(store, model, environment, before, after, limit)
        if environment is not None and is_comparable
        else None,
    )


def _decisions(
    store: Store,
    model: Model,
    environment: str,
    before: PostProcessingHead,
    after: PostProcessingHead,
    limit: int,
) -> DecisionSample:
    """Both heads applied to the newest usable predictions of a population."""
    window = store.predictions.window(model.id, environment, limit=limit, since=EPOCH, classes=before.classes)
    decisions = before.apply(window.logits).decisions
    found = find_affected(window.logits, decisions, after)
    names = after.decision_names
    changed = zip(
        found.rows.tolist(),
        found.decisions.tolist(),
        found.new_decisions.tolist(),
        found.expected_costs.tolist(),
        strict=True,
    )
    newest = cast("list[tuple[int, int, int, float]]", list(changed))[: -MOST_SHOWN - 1 : -1]
    return DecisionSample(
        environment=environment,
        compared=found.counts.predictions,
        changed=found.counts.affected,
        share=found.counts.share,
        since=logged_at(window.ids[0]) if window.ids else None,
        names=list(names),
        changes=[ChangeAnswer.of(change) for change in found.counts.changes],
        predictions=[
            ChangedDecision(
                prediction_id=window.ids[row],
                logged_at=logged_at(window.ids[row]),
                before=names[old],
                after=names[new],
                expected_cost=cost,
            )
            for row, old, new, cost in newest
        ],
    )
