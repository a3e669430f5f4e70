"""Attaches a recommendation and publishes heads fitted for its costs and decision rule, in one transaction."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from lifelong_core.deploy import PostProcessingHead, fit_head
from lifelong_core.deploy.criterion.expected_criterion import with_expectation
from lifelong_core.entities.design.recommendations import KeptHead, PublishedHead, Refit
from lifelong_core.entities.heads import HeadPin, HeadRecord
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.design.recommendations import attach_recommendation, task_after
from lifelong_core.store.heads.activations import all_pins
from lifelong_core.store.heads.checks import follows_task
from lifelong_core.store.heads.heads import publish_head, put_in_force
from lifelong_core.store.heads.rows import read_heads, split_damaged
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.registry.registry import active_versions, change_registry
from lifelong_core.store.registry.tasks import task_named
from lifelong_core.store.schema import tables
from lifelong_core.store.store import Store
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import ConflictError, InvalidInputError

if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold

_SAME_SHARE = 1e-12
"""Smaller differences of prevalences are rounding."""


@dataclass(frozen=True)
class _Situation:
    """Inputs of the refit, and the heads in force by environment (None: the default head)."""

    task: Task
    model: Model
    set_id: int
    versions: dict[str | None, int]
    pins: dict[str | None, HeadPin]


@dataclass(frozen=True)
class _Plan:
    """Planned changes of the heads of a model."""

    fitted: dict[str | None, PostProcessingHead]
    kept: tuple[KeptHead, ...]
    held: tuple[str, ...]
    """environments for which the present default head becomes their own head"""


def attach_and_refit(
    store: Store,
    task: str,
    recommendation: "Recommendation",
    *,
    thresholds: "Sequence[AcceptanceThreshold]" = (),
    expected_version: int | None = None,
    force_reason: str | None = None,
    actor: str,
) -> Refit:
    """Attach a recommendation, and refit all heads in force of the task's promoted model; both or neither.

    Heads are fitted on the active calibration set of the model, with the costs and the decision rule of the task after
    the attachment. The default head is fitted for the class mix that the recommendation states for the use; if it
    states none, for the class mix of the present default head. An environment's own head is fitted for the class mix
    that it assumes at present.

    A head stays in force

    - if it already has these costs, this decision rule and this class mix;
    - if it is pinned (`Heads.pin`). For a pinned environment that uses the default head, the present default head
      becomes its own head;
    - if it is damaged, because its class mix is unknown.

    Returns:
        The recommendation, the model, its new heads, and those that stayed in force.

    Raises:
        NotFoundError: there is no such task.
        InvalidInputError: the recommendation does not fit the task, or a head's class mix does not fit the decision
            rule: a target or an F score needs a positive prevalence of its class.
        UnidentifiableError: a class with a positive target prevalence has no calibration sample.
        PayloadTooLargeError: the document is too large to be stored.
        ConflictError: the task has no promoted model, the model has no calibration set, or one of these, a head in
            force or a pin changed during the call; and as for `attach`.
    """
    with store.database.read() as connection:
        situation = _situation(connection, task)
        present = _present_heads(connection, situation)
    # Fitted before the transaction, so that no other writer waits for it.
    plan = _plan(store, situation, present, recommendation)
    with change_registry(store.database) as connection:
        if _situation(connection, task) != situation:
            raise ConflictError(
                f"the task {task}, its model or a head of it changed while heads were fitted.",
                field="refit_head",
                hint="Look at them and try again.",
            )
        attached = attach_recommendation(
            connection,
            task,
            recommendation,
            thresholds=thresholds,
            expected_version=expected_version,
            force_reason=force_reason,
            actor=actor,
        )
        for environment in plan.held:
            put_in_force(
                connection,
                situation.model,
                environment,
                situation.versions[None],
                actor=actor,
                reason="publish",
            )
        published = [
            publish_head(
                connection,
                situation.model,
                replace(head, provenance={**head.provenance, "recommendation": attached.version}),
                environment=environment,
                actor=actor,
                reason="publish",
            )
            for environment, head in plan.fitted.items()
        ]
    heads = tuple(
        PublishedHead(environment=environment, version=record.version, record=record)
        for environment, record in zip(plan.fitted, published, strict=True)
    )
    return Refit(attached=attached, model=situation.model, published=heads, kept=plan.kept)


def _situation(connection: sa.Connection, task_name: str) -> _Situation:
    task = task_named(connection, task_name)
    model, set_id = _calibrated(connection, task)
    versions = active_versions(connection)
    return _Situation(
        task,
        model,
        set_id,
        {
            environment: version
            for (model_id, environment), version in versions.items()
            if model_id == model.id
        },
        {pin.environment: pin for pin in all_pins(connection) if pin.model_id == model.id},
    )


def _calibrated(connection: sa.Connection, task: Task) -> tuple[Model, int]:
    """The promoted model of a task and the id of its active calibration set.

    Raises:
        ConflictError: there is none.
    """
    if task.promoted_model_id is None:
        raise ConflictError(
            f"the task {task.name} has no promoted model.",
            field="refit_head",
            hint="Promote one, or attach the recommendation without new heads.",
        )
    model = model_with_id(connection, task.promoted_model_id)
    if model.calibration_set_id is None:
        raise ConflictError(
            f"the model {model.reference} has no calibration set.",
            field="refit_head",
            hint="Give it one, or attach the recommendation without new heads.",
        )
    return model, model.calibration_set_id


def _present_heads(connection: sa.Connection, situation: _Situation) -> dict[str | None, HeadRecord | str]:
    """The heads in force by environment; a damaged head as its damage."""
    rows, model_id = tables.heads.c, situation.model.id
    records = read_heads(
        connection, (rows.model_id == model_id) & rows.version.in_(set(situation.versions.values()))
    )
    versions = {(model_id, environment): version for environment, version in situation.versions.items()}
    served, damaged = split_damaged(versions, records, {model_id: situation.task})
    return {environment: head for (_, environment), head in (*served.items(), *damaged.items())}


def _plan(
    store: Store,
    situation: _Situation,
    present: dict[str | None, HeadRecord | str],
    recommendation: "Recommendation",
) -> _Plan:
    after = task_after(recommendation, situation.task)
    calibration = store.calibration_sets.load(situation.set_id)
    provenance = {"origin": "recommendation", "model": situation.model.reference, "task": situation.task.name}
    fitted: dict[str | None, PostProcessingHead] = {}
    kept: list[KeptHead] = []
    for environment in (None, *sorted(filter(None, situation.versions))):
        head = present.get(environment)
        target = stated_prevalences(recommendation) if environment is None else None
        if target is None and isinstance(head, HeadRecord):
            target = head.head.assumed_prevalence
        stays = None if head is None else _kept(situation, environment, head, target, after)
        if stays is not None:
            kept.append(stays)
            continue
        with _name_place_in_errors(environment):
            head = fit_head(
                calibration,
                after.costs,
                target_prevalence=target,
                class_names=after.class_names,
                provenance=provenance,
                decision_rule=after.decision_rule,
            )
            fitted[environment] = with_expectation(head, calibration)
    held = _held(situation) if None in fitted and isinstance(present.get(None), HeadRecord) else ()
    return _Plan(fitted, (*kept, *held), tuple(head.environment for head in held if head.environment))


@contextmanager
def _name_place_in_errors(environment: str | None) -> Generator[None]:
    place = "the default head" if environment is None else f"the head of {environment}"
    try:
        yield
    except InvalidInputError as error:
        raise type(error)(
            f"{place} cannot be fitted again: {error.message}", field=error.field, hint=error.hint
        ) from error


def stated_prevalences(recommendation: "Recommendation") -> Floats | None:
    """The class mix that a recommendation states for the use and depends on; None: it has none."""
    stated = recommendation.fingerprint.target_prevalences
    unused = {answer.item for answer in recommendation.unused}
    return None if stated is None or "target_prevalences" in unused else np.asarray(stated)


def _kept(
    situation: _Situation,
    environment: str | None,
    present: HeadRecord | str,
    target: Floats | None,
    after: Task,
) -> KeptHead | None:
    """Why a head stays; None: it does not."""
    version = situation.versions[environment]
    if isinstance(present, HeadRecord) and _fits(present.head, target, after):
        cause, reason = "fits", "it decides by these costs and this rule for this class mix already."
    elif environment in situation.pins:
        cause, reason = "pinned", f"it is {_pinned(situation.pins[environment])}."
    elif target is None:
        cause, reason = "damaged", f"{present}: the class mix that it assumes is unknown."
    else:
        return None
    return KeptHead(environment=environment, version=version, cause=cause, reason=reason)


def _held(situation: _Situation) -> tuple[KeptHead, ...]:
    """Pinned environments that use the default head; the refit replaces that head."""
    return tuple(
        KeptHead(
            environment=environment,
            version=situation.versions[None],
            cause="pinned",
            reason=f"it is {_pinned(situation.pins[environment])}, and keeps as its own what was the default head.",
        )
        for environment in sorted(filter(None, situation.pins))
        if environment not in situation.versions
    )


def _pinned(pin: HeadPin) -> str:
    return f"pinned by {pin.pinned_by}: {pin.reason!r}"


def _fits(head: PostProcessingHead, target: Floats | None, after: Task) -> bool:
    return target is not None and follows_task(head, after) and is_same_mix(head, target)


def is_same_mix(head: PostProcessingHead, prevalence: Floats) -> bool:
    """Whether a head assumes this class mix, shape (C,)."""
    return np.allclose(head.assumed_prevalence, prevalence, rtol=0, atol=_SAME_SHARE)
