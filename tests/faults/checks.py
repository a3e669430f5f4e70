"""Invariants after every fault, as pure functions that return one sentence per violation.

tests/faults/test_controls.py shows that each check detects its violation.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from uuid import UUID

import numpy as np

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import AuditEntry, Cycle, Prediction, StoredRequest, logged_at
from tests.faults.load import Answer, Failure

NOTHING: Mapping[bytes, datetime] = MappingProxyType({})
IMAGE_TOLERANCE = 1e-4
"""Largest difference of the logits of an image from those that its sender computes, by another order of the additions.
JPEG keeps the squares of the images exactly."""


def failed(failures: Sequence[Failure]) -> list[str]:
    """Requests without a decision after all repetitions."""
    return [f"request {one.request_id} failed: {one.reason}" for one in failures]


def interrupted(answers: Sequence[Answer]) -> list[str]:
    """Requests that had to be repeated although clients must not notice the fault."""
    return [
        f"request {one.request_id} had to be repeated: {one.resets} resets, {one.refusals} refusals"
        for one in answers
        if one.resets or one.refusals
    ]


def lost(answers: Sequence[Answer], rows: Sequence[Prediction]) -> list[str]:
    """Answered predictions that are not in the log."""
    logged = {row.id for row in rows}
    return [
        f"the answered prediction {one} of {answer.request_id} is not in the log"
        for answer in answers
        for one in answer.prediction_ids
        if one not in logged
    ]


def duplicated(rows: Sequence[Prediction]) -> list[str]:
    """Rows with the id or the logits of another row: every sent row has different logits."""
    ids = Counter(row.id for row in rows)
    # Logits of one id count once: a duplicated id is reported above.
    contents = Counter(content for _, content in {(row.id, row.logits.tobytes()) for row in rows})
    return [
        *(f"the prediction {one} is in the log {count} times" for one, count in ids.items() if count > 1),
        *(
            f"the logits {_words(one)} are in the log {count} times"
            for one, count in contents.items()
            if count > 1
        ),
    ]


def _words(content: bytes) -> str:
    return str(np.frombuffer(content, np.float32).tolist())


def answered_twice(answers: Sequence[Answer]) -> list[str]:
    """Predictions in the answers of two requests."""
    ids = Counter(one for answer in answers for one in answer.prediction_ids)
    return [f"the prediction {one} was answered {count} times" for one, count in ids.items() if count > 1]


def unasked(answers: Sequence[Answer], rows: Sequence[Prediction]) -> list[str]:
    """Rows of the log without an answer, although every request was answered in the end."""
    answered = {one for answer in answers for one in answer.prediction_ids}
    return [
        f"the prediction {row.id} in the log was never answered" for row in rows if row.id not in answered
    ]


def altered(
    answers: Sequence[Answer], rows: Sequence[Prediction], group_hashes: Mapping[str, bytes]
) -> list[str]:
    """Rows of the log that differ from their answers.

    Args:
        answers: all answers.
        rows: all rows.
        group_hashes: hash of each group of the answers.
    """
    logged = {row.id: row for row in rows}
    return [
        f"the prediction {one} of {answer.request_id} is in the log with other values than were answered"
        for answer in answers
        for index, one in enumerate(answer.prediction_ids)
        if one in logged and not _same(answer, index, logged[one], group_hashes)
    ]


def _same(answer: Answer, index: int, row: Prediction, group_hashes: Mapping[str, bytes]) -> bool:
    return (
        row.decision == answer.decisions[index]
        and row.head_version == answer.head_version
        and row.environment == answer.environment
        and row.group_hash == (None if answer.group is None else group_hashes[answer.group])
        and np.allclose(row.logits, answer.logits[index], rtol=0, atol=IMAGE_TOLERANCE * answer.is_image)
    )


def with_logged_logits(answers: Sequence[Answer], rows: Sequence[Prediction]) -> list[Answer]:
    """Answers in which the rounded logits of images are replaced by those of the log, which their head got."""
    logged = {row.id: row.logits for row in rows}
    return [
        dataclasses.replace(one, logits=np.stack([logged[one.prediction_ids[0]]]))
        if one.is_image and one.prediction_ids[0] in logged
        else one
        for one in answers
    ]


def mixed(answers: Sequence[Answer], heads: Mapping[int, PostProcessingHead]) -> list[str]:
    """Answers that differ, even in the last bit, from the output of their head for the sent logits."""
    return [
        f"the answer to {one.request_id} is not from head {one.head_version}, which it names"
        for one in answers
        if not _is_of_its_head(one, heads)
    ]


def _is_of_its_head(answer: Answer, heads: Mapping[int, PostProcessingHead]) -> bool:
    if answer.head_version not in heads:
        return False
    output = heads[answer.head_version].apply(answer.logits)
    return answer.decisions == tuple(output.decisions.tolist()) and np.array_equal(
        answer.probabilities, output.probabilities
    )


def late_heads(answers: Sequence[Answer], published: Mapping[int, float], *, within: float) -> list[str]:
    """Answers of an older head than the latest one published more than `within` seconds before their request.

    Args:
        answers: answers of the environment of the heads.
        published: latest time (monotonic clock) at which each version came in force.
        within: seconds.
    """
    versions = sorted(published)
    # A later version cannot be due before an earlier one.
    moments = np.maximum.accumulate([published[version] for version in versions])

    def due(answer: Answer) -> int:
        count = int(np.searchsorted(moments, answer.sent_at - within))
        return versions[count - 1] if count else 0

    return [
        f"{one.request_id} was answered by head {one.head_version} in worker {one.worker}, {due(one)} was due"
        for one in answers
        if one.head_version < due(one)
    ]


def wrong_requests(answers: Sequence[Answer], stored: Mapping[str, StoredRequest]) -> list[str]:
    """Request ids whose predictions in the log are missing or differ from the answer."""
    return [
        f"the request id {one.request_id} leads to other predictions than were answered"
        for one in answers
        if one.request_id not in stored
        or tuple(row.id for row in stored[one.request_id].predictions) != one.prediction_ids
    ]


def leaked(
    rows: Sequence[Prediction], environment: str, erased: Mapping[bytes, datetime] = NOTHING
) -> list[str]:
    """Rows of another environment, or of a group that was erased after their prediction.

    Args:
        rows: rows that a reader of the environment got.
        environment: its name.
        erased: time of the erasure of each group, by its hash.
    """
    return [
        *(
            f"the prediction {row.id} is of {row.environment}"
            for row in rows
            if row.environment != environment
        ),
        *(
            f"the prediction {row.id} is of an erased group"
            for row in rows
            if row.group_hash in erased and logged_at(row.id) <= erased[row.group_hash]
        ),
    ]


def spool_left(predictions: int) -> list[str]:
    """Predictions that are still in the spool."""
    return [] if predictions == 0 else [f"{predictions} predictions are left in the spool"]


@dataclass(frozen=True)
class Cut:
    """Delivery of a spool that was truncated to its first `offset` bytes."""

    offset: int
    delivered: tuple[UUID, ...]
    damaged: int
    """number of records counted as damaged"""


def torn_spool(cuts: Sequence[Cut], whole: Sequence[UUID]) -> list[str]:
    """Cuts that lost more than the torn record, or did not count it as damaged.

    Each additional byte either delivers no further record, and the torn record counts as damaged; or it completes a
    record, which is delivered, and none is damaged.

    Args:
        cuts: cuts at every offset of a range, in order, the last one at the end.
        whole: prediction ids of the uncut spool, in order.
    """
    violations = [
        f"cut at byte {cut.offset}: other predictions than the first {len(cut.delivered)}, or in another order"
        for cut in cuts
        if cut.delivered != tuple(whole[: len(cut.delivered)])
    ]
    for before, cut in pairwise(cuts):
        ends_a_record = len(cut.delivered) > len(before.delivered)
        if len(cut.delivered) < len(before.delivered):
            violations.append(f"cut at byte {cut.offset}: a torn tail cost what is before it")
        if cut.damaged != int(not ends_a_record):
            violations.append(f"cut at byte {cut.offset}: {cut.damaged} damaged records were counted")
    if cuts[-1].delivered != tuple(whole):
        violations.append(
            f"the whole spool gave {len(cuts[-1].delivered)} predictions instead of {len(whole)}"
        )
    return violations


def audit_gaps(entries: Sequence[AuditEntry]) -> list[str]:
    """Missing or duplicated ids of the audit log."""
    ids = sorted(entry.id for entry in entries)
    return [
        f"entry {one} of the audit log is followed by {other}"
        for one, other in pairwise(ids)
        if other != one + 1
    ]


def repeated_cycles(
    cycles: Sequence[Cycle], audit: Sequence[AuditEntry], *, in_order: bool = True
) -> list[str]:
    """Cycles that ran twice, read nothing new, or whose swap is not in the audit log exactly once.

    Args:
        cycles: all cycles of one (model, environment).
        audit: its audit entries.
        in_order: False if a clock was wrong, so that a later cycle may have run earlier.
    """
    ordered = sorted(cycles, key=lambda cycle: cycle.due_at if in_order else cycle.log_position)
    due = Counter(cycle.due_at for cycle in ordered)
    published = Counter(cycle.published_version for cycle in ordered if cycle.published_version is not None)
    swapped = Counter(entry.details.get("version") for entry in audit if entry.action == "heads.swap")
    return [
        *(f"the cycle due {one} ran {count} times" for one, count in due.items() if count > 1),
        *(
            f"the cycle due {two.due_at} read up to {two.log_position}, the one before it up to {one.log_position}"
            for one, two in pairwise(ordered)
            if two.log_position <= one.log_position
        ),
        *(
            f"head {version} comes from {published[version]} cycles, the audit log has it {swapped[version]} times"
            for version in published | swapped
            if (published[version], swapped[version]) != (1, 1)
        ),
    ]
