"""What each change does, in words: shown before it is confirmed, and how to undo it afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.head_wording import describe_difference, describe_head
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.operations.administration.jobs import CancelJob
from lifelong_core.operations.administration.tokens import EndSessions, NewToken, RevokeToken, Rotation
from lifelong_core.operations.cycles import ApproveCycle, RejectCycle, ReplayCycle
from lifelong_core.operations.design.interviews import DiscardInterview
from lifelong_core.operations.design.recommendations import AttachRecommendation
from lifelong_core.operations.head_differences import DiffProposal, describe_damage, diff_proposal
from lifelong_core.operations.heads import NewHead, NewPin, RollBack, Unpin
from lifelong_core.operations.labelling_plans import WantedPlan
from lifelong_core.operations.models import PromoteModel
from lifelong_core.operations.operation import Call, Context
from lifelong_core.operations.proposals import AcceptProposal, DismissProposal
from lifelong_core.operations.trials import EndTrial, NewCanary, RollBackModel, StartShadow
from lifelong_core.values.errors import ConflictError

_NO_UNDO = "This cannot be undone."


@dataclass(frozen=True)
class Change:
    """One kind of change."""

    button: str
    """what it does, in the imperative"""
    describe: Callable[[Context, Any], Sequence[str]]
    """what will happen, as sentences, from the call"""
    undo: str
    """how to undo it, as a sentence"""
    is_danger: bool = False
    """whether the button warns"""


def change_of(call: Call[Any]) -> Change:
    """The change that a call makes."""
    return CHANGES[type(call)]


def change_named(operation: str) -> Change | None:
    """The change that the operation of this name makes; None: there is none."""
    return _BY_NAME.get(operation)


def _publish(context: Context, call: NewHead) -> list[str]:
    head = PostProcessingHead.from_document(call.head)
    return [
        f"A head of {call.model} that {describe_head(head)} serves {_place(call)}, within a second.",
        *_compared(context, call, head),
        _pinned(context, call, None),
        *_calibrated(context, call, head),
    ]


def _compared(context: Context, call: NewHead, head: PostProcessingHead) -> list[str]:
    """How a head differs from the one that it replaces."""
    serving = context.store.heads.serving(call.model, call.environment)
    if serving is None:
        return []
    present = context.store.heads.some(call.model, [serving]).get(serving)
    if not isinstance(present, HeadRecord):
        return [describe_damage(serving)]
    return describe_difference(present.head, head) or [f"It computes the same as head {serving}."]


def _pinned(
    context: Context, call: NewHead | RollBack, reason: str | None, *, is_default: bool = False
) -> str:
    """Whether cycles may replace a head after a change; a pin that is there stays.

    Args:
        context: of the change.
        call: the change.
        reason: of a new pin; None: none is wanted.
        is_default: whether an environment uses the default head after the change.
    """
    pins = {pin.environment: pin for pin in context.store.heads.pins(call.model)}
    pin = pins.get(call.environment) or (pins.get(None) if is_default and reason is None else None)
    if pin is not None:
        unused = "" if reason is None else " The new reason is not kept."
        return f"It stays pinned by {pin.pinned_by} ({pin.reason!r}): no cycle replaces it.{unused}"
    if reason is not None:
        return f"It is pinned ({reason!r}): no cycle replaces it."
    return "It is not pinned: a cycle may replace it."


def _calibrated(context: Context, call: NewHead | RollBack, head: PostProcessingHead) -> list[str]:
    """What a new default head does to the active calibration set of its model."""
    found = context.store.calibration_sets.of_new_head(call.model, head)
    if call.environment is not None or found.fitted_on in (None, found.active):
        return []
    return [
        f"Calibration set {found.fitted_on.id}, on which it was fitted, becomes the active one of {call.model}: cycles"
        " in all environments fit heads on it."
    ]


def _pin(_: Context, call: NewPin) -> list[str]:
    return [
        f"No cycle replaces the head of {call.model} that serves {_place(call)}: {call.reason!r}.",
        "People still can publish another head or roll back.",
    ]


def _unpin(context: Context, call: Unpin) -> list[str]:
    pin = context.store.heads.pin_in_force(call.model, call.environment)
    reason = "" if pin is None else f" The reason of the pin was {pin.reason!r}, by {pin.pinned_by}."
    return [f"Cycles may replace the head of {call.model} that serves {_place(call)} again.{reason}"]


def _approve(context: Context, call: ApproveCycle) -> list[str]:
    difference = diff_proposal(context, DiffProposal(cycle=call.cycle))
    effects = [
        f"A head that {difference.after_text} replaces head {difference.before_version} within a second."
    ]
    if (sample := difference.decisions) is not None:
        effects.append(
            f"{sample.changed:,} of the newest {sample.compared:,} decisions in {sample.environment} would be others."
        )
    return [*effects, "Decisions that were answered do not change."]


def _reject(context: Context, call: RejectCycle) -> list[str]:
    cycle = context.store.cycles.find(call.cycle)
    return [
        f"Head {cycle.head_version} stays in force in {cycle.environment}; the reason is kept: {call.reason!r}.",
        "While it stays, no cycle proposes a head for practically the same prevalences again.",
    ]


def _place(call: NewHead | NewPin | Unpin | RollBack) -> str:
    return "as the default head" if call.environment is None else f"in {call.environment}"


def _roll_back(context: Context, call: RollBack) -> list[str]:
    heads, to_version = context.store.heads, call.to_version
    found = (to_version, False) if to_version else heads.version_before(call.model, call.environment)
    if found is None:
        raise ConflictError(
            "no head was in force before the present one.", hint="Publish the head that you want."
        )
    version, is_default = found
    which = f"The default head ({version})" if is_default else f"Head {version}"
    return [
        f"{which} of {call.model} decides {_place(call)} again, within a second.",
        _pinned(context, call, call.pin_reason, is_default=is_default),
        *_calibrated(context, call, heads.get(call.model, version).head),
    ]


def _start_shadow(_: Context, call: StartShadow) -> list[str]:
    return [
        f"{call.model} decides about the same images as the promoted model, for the log only.",
        "No answer changes.",
    ]


def _start_canary(_: Context, call: NewCanary) -> list[str]:
    return [
        f"{call.model} answers {100 * call.share:g} % of the groups.",
        "The promoted model answers the others.",
    ]


def _promote(context: Context, call: PromoteModel) -> list[str]:
    task = next(
        task for task in context.store.tasks.list() if task.id == context.store.models.get(call.model).task_id
    )
    return [
        f"{call.model} answers all requests of {task.name} that name no version, within a second.",
        *_reason(call),
    ]


def _end_trial(_: Context, call: EndTrial) -> list[str]:
    return [f"The promoted model of {call.task} answers all requests again."]


def _roll_back_model(_: Context, call: RollBackModel) -> list[str]:
    return [
        f"The model of {call.task} that was promoted before answers all requests that name no version again."
    ]


def _accept_proposal(_: Context, call: AcceptProposal) -> list[str]:
    if call.retraining is not None:
        return [
            "A monitor trains a new model as a job.",
            "The proposal is closed. No model is promoted by it.",
        ]
    named = "" if call.job is None else f" with the job {call.job}"
    return [f"The proposal is closed as accepted{named}.", "No training starts by this."]


def _dismiss_proposal(_: Context, call: DismissProposal) -> list[str]:
    return [
        f"The proposal is closed without a training: {call.reason!r}.",
        "Its reason is not proposed again before a cycle has found it gone.",
    ]


def _plan_labels(_: Context, call: WantedPlan) -> list[str]:
    return [
        f"A monitor chooses {call.size} predictions of {call.model} in {call.environment} to label, as a job."
    ]


def _cancel_job(context: Context, call: CancelJob) -> list[str]:
    job = context.store.jobs.get(call.job)
    return [
        f"The job ({job.kind}, submitted by {job.created_by}) stops within seconds; its work so far is lost."
    ]


def _discard_interview(_: Context, call: DiscardInterview) -> list[str]:
    return [
        f"Interview {call.interview} is deleted with its answers.",
        "Recommendations attached to tasks stay.",
    ]


def _attach(_: Context, call: AttachRecommendation) -> list[str]:
    effects = [
        f"The models of {call.task} are judged by these metrics from now on.",
        "Costs and decision rule in the answers become those of the task.",
    ]
    if call.refit_head:
        effects.append("The heads of the promoted model are fitted again for them; pinned heads stay.")
    return [*effects, *_reason(call)]


def _new_token(_: Context, call: NewToken) -> list[str]:
    scopes = ", ".join(sorted(call.scopes))
    where = "in all environments" if call.environments is None else f"only in {', '.join(call.environments)}"
    until = "it is revoked" if call.expires_at is None else f"{call.expires_at:%Y-%m-%d %H:%M} UTC"
    return [f"{call.name} gets a token with the scopes {scopes}, {where}.", f"It is valid until {until}."]


def _rotate_token(_: Context, call: Rotation) -> list[str]:
    seconds = call.overlap_seconds
    former = (
        f"stays valid for {seconds // 3600} h" if seconds else "is refused within a second, its sessions end"
    )
    return [f"{call.name} gets a new secret, which is shown once.", f"The present secret {former}."]


def _revoke_token(_: Context, call: RevokeToken) -> list[str]:
    return [f"Requests with the token {call.name} are refused within a second.", "Its sessions end."]


def _end_sessions(_: Context, call: EndSessions) -> list[str]:
    return [f"Every browser that is logged in as {call.name} has to log in again.", "The token stays valid."]


def _reason(call: PromoteModel | AttachRecommendation) -> list[str]:
    return [] if call.force_reason is None else [f"The audit log keeps the reason {call.force_reason!r}."]


def _replay(_: Context, call: ReplayCycle) -> list[str]:
    return [f"A job judges the window of cycle {call.cycle} again and compares the reports. No head changes."]


CHANGES: dict[type[Call[Any]], Change] = {
    ApproveCycle: Change(
        "Approve the proposed head", _approve, "Roll the head back on the page of the heads."
    ),
    RejectCycle: Change("Reject the proposed head", _reject, "Publish the head that the cycle page shows."),
    NewHead: Change("Publish the head", _publish, "Roll the head back."),
    NewPin: Change("Pin the head", _pin, "Unpin it."),
    Unpin: Change("Unpin the head", _unpin, "Pin it again.", is_danger=True),
    RollBack: Change(
        "Roll the head back", _roll_back, "Roll back to the version that decided until now.", is_danger=True
    ),
    StartShadow: Change("Start the shadow", _start_shadow, "End the trial on the page of the task."),
    NewCanary: Change(
        "Let the canary answer",
        _start_canary,
        "Make it a shadow again, or end the trial, on the page of the task.",
    ),
    PromoteModel: Change("Promote the model", _promote, "Roll the model back on the page of the task."),
    EndTrial: Change("End the trial", _end_trial, "Start the trial again.", is_danger=True),
    RollBackModel: Change(
        "Roll the model back", _roll_back_model, "Promote the other model again.", is_danger=True
    ),
    AcceptProposal: Change(
        "Accept the proposal", _accept_proposal, "Cancel the job; a closed proposal stays closed."
    ),
    DismissProposal: Change(
        "Dismiss the proposal",
        _dismiss_proposal,
        "A dismissed proposal stays closed; a retraining can be started any time.",
    ),
    WantedPlan: Change(
        "Choose predictions to label", _plan_labels, "Cancel the job; a plan changes no decision."
    ),
    ReplayCycle: Change(
        "Replay the cycle", _replay, "Cancel the job; a replay changes neither heads nor decisions."
    ),
    CancelJob: Change("Cancel the job", _cancel_job, "Submit the job again.", is_danger=True),
    DiscardInterview: Change("Discard the interview", _discard_interview, _NO_UNDO, is_danger=True),
    NewToken: Change("Create the token", _new_token, "Revoke the token."),
    Rotation: Change("Rotate the token", _rotate_token, "Rotate it again; a former secret does not return."),
    RevokeToken: Change("Revoke the token", _revoke_token, _NO_UNDO, is_danger=True),
    EndSessions: Change("Log out everywhere", _end_sessions, "Log in again.", is_danger=True),
    AttachRecommendation: Change(
        "Attach the metrics", _attach, "Attach an earlier recommendation again; roll refitted heads back."
    ),
}
"""The changes of all forms, by their call. An answer of an interview needs no confirmation: it changes nothing that
serves, and the interview takes it back."""

_BY_NAME = {call.operation.name: change for call, change in CHANGES.items()}
