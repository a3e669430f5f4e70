"""The words of notifications: what happened, why, what to do, and links."""

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lifelong_core.configuration.notification_fields import NotificationKind, NotificationSettings
from lifelong_core.entities.notifications import Notification

_POPULATION: Final = "/populations/{model}/{environment}"


@dataclass(frozen=True)
class _Words:
    """Texts with the details of a notification in braces."""

    title: str
    happened: str
    to_do: str
    page: str = ""
    runbook: str | None = None
    """name of a file in docs/runbooks, that of the alert on the same subject"""


_WORDS: Final[Mapping[NotificationKind, _Words]] = {
    "swap": _Words(
        "New head for {model} in {environment}",
        "Head {published_version} replaces head {head_version} of {model} in {environment}; published by {actor} for"
        " cycle {cycle}.",
        "Read the cycle: lifelong cycles show {cycle}. To undo the swap: lifelong heads rollback {model} --environment"
        " {environment}.",
        _POPULATION,
        "LifelongDecisionsAffected",
    ),
    "refuse": _Words(
        "No adaptation for {model} in {environment}",
        "Cycle {cycle} refuses to adapt {model} in {environment}. Head {head_version} stays. Further refusals in a row"
        " are not reported.",
        "Look at recent images and their way here: a new scanner, protocol or preprocessing. Read the cycle: lifelong"
        " cycles show {cycle}.",
        _POPULATION,
        "LifelongCycleRefused",
    ),
    "head_proposal": _Words(
        "A head for {model} in {environment} waits for approval",
        "Cycle {cycle} proposes to replace head {head_version} of {model} in {environment}.",
        "Approve it: lifelong heads approve {cycle}. Or decline it: lifelong heads reject {cycle}.",
        _POPULATION,
        "LifelongProposalWaits",
    ),
    "retraining_proposal": _Words(
        "A retraining is proposed for {model} in {environment}",
        "A monitor proposes to train another model, because of {reason} of {model} in {environment}.",
        "{look_first} Then accept or dismiss the proposal: lifelong proposals show {proposal}.",
        "/proposals/{proposal}",
        "LifelongRetrainingProposed",
    ),
    "target_missed": _Words(
        "{model} misses the target of its decision rule in {environment}",
        "Two cycles in a row expect {metric} of {value:.3f} ({low:.3f} to {high:.3f}) in {environment}; the target is"
        " {target:.3f}.",
        "Read the cycle: lifelong cycles show {cycle}. If no cut-off reaches the target, add calibration cases,"
        " retrain, or state another target.",
        _POPULATION,
        "LifelongTargetMissed",
    ),
    "acceptance_failed": _Words(
        "{model} misses the acceptance thresholds of its task",
        "The validation of {model} on {samples} cases misses acceptance thresholds of recommendation"
        " {recommendation_version}. The model is not promoted without a reason.",
        "Compare the metrics with the thresholds, then train or calibrate a better model, or state other thresholds.",
        "/validations",
        "LifelongThresholdMissed",
    ),
    "job_failed": _Words(
        "A job failed: {kind}",
        "The job {job} of the kind {kind}, submitted by {created_by}, failed: {message}",
        "{hint} Read its log: lifelong jobs show {job}.",
        "/jobs/{job}",
        "LifelongJobFailed",
    ),
    "test": _Words(
        "Test message of lifelong",
        "{actor} asked for a test message: this channel works.",
        "Nothing is to be done.",
    ),
}


@dataclass(frozen=True)
class Message:
    """A notification in words; a webhook sends these fields as JSON."""

    id: str
    kind: str
    created_at: str
    subject: str
    details: Mapping[str, Any]
    title: str
    happened: str
    why: str
    to_do: str
    console: str | None
    """link to the page in the console; None: the settings name no console"""
    runbook: str | None
    """link to the runbook in the console, or its file; None: there is none"""

    @property
    def text(self) -> str:
        """All of it as paragraphs of plain text."""
        links = {"Console": self.console, "Runbook": self.runbook}
        lines = [f"{name}: {link}" for name, link in links.items() if link]
        lines.append(f"Notification {self.id} of {self.created_at}.")
        return "\n\n".join(filter(None, (self.happened, self.why, self.to_do, "\n".join(lines))))


def message_of(notification: Notification, settings: NotificationSettings) -> Message:
    """The words of a notification, with links to the console and runbooks of the settings."""
    details, words = notification.details, _WORDS[notification.kind]
    quoted = {name: urllib.parse.quote(str(value)) for name, value in details.items()}
    console = settings.console_url
    runbook = (
        f"docs/runbooks/{words.runbook}.md" if console is None else f"{console}/runbooks/{words.runbook}"
    )
    return Message(
        id=str(notification.id),
        kind=notification.kind,
        created_at=notification.created_at.isoformat(timespec="seconds"),
        subject=notification.subject,
        details=details,
        title=" ".join(words.title.format_map(details).split()),
        happened=words.happened.format_map(details),
        why=" ".join(details.get("reasons") or ()),
        to_do=words.to_do.format_map(details),
        console=None if console is None else console + words.page.format_map(quoted),
        runbook=None if words.runbook is None else runbook,
    )
