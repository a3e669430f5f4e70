"""The checked start of a trial, and of each of its stages."""

from dataclasses import dataclass
from typing import Any

from lifelong_core.store.heads.registration import check_promotion
from lifelong_core.store.registry.models import check_graph_is_stored, model_with_id
from lifelong_core.store.registry.records import Model
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.rollouts.candidate_heads import fit_candidate_heads, publish_candidate_heads
from lifelong_core.store.rollouts.records import Rollout, Stage
from lifelong_core.store.rollouts.rollouts import check_candidate, check_share, put_on_trial
from lifelong_core.store.store import Store


@dataclass(frozen=True)
class StartedTrial:
    """A trial after its start or change.

    Attributes:
        model: the candidate.
        rollout: the trial.
        fitted: environments for which the candidate got a head of its own.
    """

    model: Model
    rollout: Rollout
    fitted: tuple[str, ...]


def start_trial(
    store: Store,
    reference: str,
    *,
    stage: Stage,
    share: float = 0.0,
    actor: str,
    force_reason: str | None = None,
) -> StartedTrial:
    """Try a model beside the promoted one of its task, or change the stage or share of its trial.

    First, heads are fitted for the environments of known prevalence (see `candidate_heads`). The caller makes sure that
    every living worker can load the model: `graph_check.check_servable`.

    Args:
        store: the store of the model.
        reference: the candidate, a calibrated model of kind onnx.
        stage: `shadow` decides for the log only; `canary` answers requests.
        share: of the requests that name no version, above 0 and at most 1; not used by a shadow.
        actor: name for the audit log.
        force_reason: reason for a canary that would not be promoted (see `check_promotion`), for the audit log.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: the share or the reason is not valid.
        NotAcceptedError, CalibratedOtherwiseError, WorseModelError: as for `promote_calibrated`, of a canary.
        ConflictError: the model cannot be tried (see `rollouts.check_candidate`), its stored graph is missing or
            damaged, or the heads of its task changed meanwhile.
        UnavailableError: the database or the artifact storage does not answer.
    """
    share = check_share(stage, share)
    model = store.models.get(reference)
    with store.database.read() as connection:
        check_candidate(connection, model)
    check_graph_is_stored(store.artifacts, model)
    details: dict[str, Any] = {}
    # A shadow answers no request, and its decisions may give the evidence that the gate needs.
    if stage == "canary":
        details |= check_promotion(store, model.reference, force_reason=force_reason) or {}
    heads = fit_candidate_heads(store, model)
    with change_registry(store.database) as connection:
        model = model_with_id(connection, model.id)
        check_candidate(connection, model)
        fitted = publish_candidate_heads(connection, heads, actor=actor)
        details["heads"] = fitted
        rollout = put_on_trial(connection, model, stage, share, actor=actor, details=details)
    return StartedTrial(model, rollout, tuple(fitted))
