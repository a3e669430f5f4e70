"""Positive controls: every check of the fault suite passes correct data and detects its violation."""

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import (
    AuditEntry,
    Cycle,
    Prediction,
    RequestKey,
    StoredRequest,
    logged_at,
    new_prediction_id,
)
from tests.faults import checks
from tests.faults.load import Answer, Failure, Load
from tests.integration.installation import CLASS_NAMES, COSTS
from tests.ports import free_port

HEADS = {
    version: PostProcessingHead(1.0 + version, [2.0 * version, 0, -1], COSTS, [1 / 3] * 3, CLASS_NAMES)
    for version in (1, 2)
}
MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def answer(number: int, *, version: int = 1, group: str | None = None, sent_at: float = 0.0) -> Answer:
    logits = np.random.default_rng(number).normal(size=(2, 3)).astype(np.float32)
    output = HEADS[version].apply(logits)
    return Answer(
        request_id=f"request-{number}",
        environment="here",
        group=group,
        logits=logits,
        prediction_ids=(new_prediction_id(), new_prediction_id()),
        decisions=tuple(output.decisions.tolist()),
        probabilities=output.probabilities,
        head_version=version,
        worker="1",
        due_at=sent_at,
        sent_at=sent_at,
        received_at=sent_at + 0.01,
        resets=0,
        refusals=0,
    )


def rows_of(answers: Sequence[Answer]) -> list[Prediction]:
    """The expected log after these answers."""
    return [
        Prediction(
            one.prediction_ids[row],
            1,
            one.environment,
            one.head_version,
            one.decisions[row],
            one.logits[row],
            None if one.group is None else one.group.encode(),
        )
        for one in answers
        for row in range(2)
    ]


GROUP_HASHES = {"patient": b"patient"}
ANSWERS = [answer(1), answer(2, version=2), answer(3, group="patient")]
ROWS = rows_of(ANSWERS)
LATER = answer(4)


def violations(answers: Sequence[Answer] = ANSWERS, rows: Sequence[Prediction] = ROWS) -> dict[str, int]:
    """Number of violations of each check of answers and log."""
    found = {
        "lost": checks.lost(answers, rows),
        "duplicated": checks.duplicated(rows),
        "answered twice": checks.answered_twice(answers),
        "unasked": checks.unasked(answers, rows),
        "altered": checks.altered(answers, rows, GROUP_HASHES),
        "mixed": checks.mixed(answers, HEADS),
        "leaked": checks.leaked(rows, "here"),
    }
    return {name: len(sentences) for name, sentences in found.items() if sentences}


def change(index: int, **values: object) -> list[Prediction]:
    """The log with one changed row."""
    return [dataclasses.replace(row, **values) if number == index else row for number, row in enumerate(ROWS)]


def test_what_is_right_passes() -> None:
    assert violations() == {}


TWICE = dataclasses.replace(ANSWERS[0], prediction_ids=LATER.prediction_ids)
"""The first request, answered again with other ids."""
WRONG_LOGS = {
    "lost": (ROWS[1:], {"lost": 1}),
    "delivered twice": ([*ROWS, ROWS[0]], {"duplicated": 1}),
    "logged twice": (ROWS + rows_of([TWICE]), {"duplicated": 2, "unasked": 2}),
    "never answered": (ROWS + rows_of([LATER]), {"unasked": 2}),
    "other decision": (change(0, decision=1 - ANSWERS[0].decisions[0]), {"altered": 1}),
    "other head": (change(0, head_version=2), {"altered": 1}),
    "other logits": (change(0, logits=np.nextafter(ROWS[0].logits, np.float32(9))), {"altered": 1}),
    "no group": (change(4, group_hash=None), {"altered": 1}),
    "other group": (change(4, group_hash=b"other"), {"altered": 1}),
    "other environment": (change(0, environment="there"), {"altered": 1, "leaked": 1}),
}


@pytest.mark.parametrize(("rows", "expected"), WRONG_LOGS.values(), ids=WRONG_LOGS)
def test_a_wrong_log_is_caught(rows: list[Prediction], expected: dict[str, int]) -> None:
    assert violations(rows=rows) == expected


def test_a_mixed_head_is_caught() -> None:
    one, other = answer(5, version=1), answer(5, version=2)
    mixed = [
        dataclasses.replace(one, head_version=2),
        dataclasses.replace(one, decisions=(one.decisions[0], (one.decisions[1] + 1) % 3)),
        # Rows of two heads in one answer.
        dataclasses.replace(one, probabilities=np.stack([one.probabilities[0], other.probabilities[1]])),
        dataclasses.replace(one, head_version=3),
    ]
    assert checks.mixed([one, other], HEADS) == []
    assert len(checks.mixed(mixed, HEADS)) == len(mixed)


def image_answer(number: int) -> tuple[Answer, list[Prediction]]:
    """The answer to an image, of which the client knows rounded logits, and its row."""
    logged = answer(number)
    one = dataclasses.replace(
        logged,
        logits=logged.logits[:1] + np.float32(1e-5),
        prediction_ids=logged.prediction_ids[:1],
        decisions=logged.decisions[:1],
        probabilities=logged.probabilities[:1],
        is_image=True,
    )
    return one, rows_of([logged])[:1]


def test_an_image_that_is_right_passes() -> None:
    one, rows = image_answer(5)
    assert checks.altered([one], rows, GROUP_HASHES) == []
    assert checks.mixed(checks.with_logged_logits([one], rows), HEADS) == []


def test_an_image_that_got_the_answer_of_another_is_caught() -> None:
    (one, rows), (other, _) = image_answer(5), image_answer(6)
    mixed_up = dataclasses.replace(one, logits=other.logits)
    assert len(checks.altered([mixed_up], rows, GROUP_HASHES)) == 1


def test_an_image_with_a_mixed_head_is_caught() -> None:
    one, rows = image_answer(5)
    mixed = dataclasses.replace(one, head_version=2)
    assert len(checks.mixed(checks.with_logged_logits([mixed], rows), HEADS)) == 1
    # Without its row, the rounded logits remain.
    assert checks.with_logged_logits([one], []) == [one]


def test_a_prediction_that_two_requests_got_is_caught() -> None:
    forged = dataclasses.replace(ANSWERS[1], prediction_ids=ANSWERS[0].prediction_ids)
    assert len(checks.answered_twice([ANSWERS[0], forged])) == 2


def test_a_late_head_is_caught() -> None:
    published = {1: 0.0, 2: 10.0}
    in_time = [answer(1, version=1, sent_at=10.9), answer(2, version=2, sent_at=10.1)]
    late = [answer(3, version=1, sent_at=11.1)]
    assert checks.late_heads(in_time, published, within=1.0) == []
    assert len(checks.late_heads(late, published, within=1.0)) == 1


def test_a_row_of_an_erased_group_is_caught() -> None:
    made = logged_at(ROWS[4].id)
    assert checks.leaked(ROWS, "here", {b"patient": made - MINUTE}) == []
    assert len(checks.leaked(ROWS, "here", {b"patient": made + MINUTE})) == 2


def test_a_request_id_that_leads_elsewhere_is_caught() -> None:
    def stored(one: Answer, rows: Sequence[Prediction]) -> StoredRequest:
        return StoredRequest(RequestKey(1, "here", one.request_id), b"", tuple(rows))

    right = {one.request_id: stored(one, rows_of([one])) for one in ANSWERS}
    first = ANSWERS[0]
    assert checks.wrong_requests(ANSWERS, right) == []
    missing = {name: one for name, one in right.items() if name != first.request_id}
    assert len(checks.wrong_requests(ANSWERS, missing)) == 1
    other = right | {first.request_id: stored(first, rows_of([LATER]))}
    assert len(checks.wrong_requests(ANSWERS, other)) == 1


def test_failures_and_repetitions_are_caught() -> None:
    assert checks.failed([]) == []
    assert len(checks.failed([Failure("request-1", 0.0, "500")])) == 1
    assert checks.interrupted(ANSWERS) == []
    assert len(checks.interrupted([dataclasses.replace(LATER, resets=1), *ANSWERS])) == 1
    assert len(checks.interrupted([dataclasses.replace(LATER, refusals=1), *ANSWERS])) == 1


def test_a_spool_that_is_not_empty_is_caught() -> None:
    assert checks.spool_left(0) == []
    assert len(checks.spool_left(1)) == 1


IDS = [new_prediction_id() for _ in range(3)]
RECORD = 10
"""Bytes of each record of the spool below; each holds one prediction."""


def cuts(delivered: Callable[[int], Sequence[UUID]], damaged: Callable[[int], int]) -> list[checks.Cut]:
    """A spool of three records, cut at each byte of the last two."""
    return [checks.Cut(offset, tuple(delivered(offset)), damaged(offset)) for offset in range(10, 31)]


def whole(offset: int) -> list[UUID]:
    return IDS[: offset // RECORD]


def torn(offset: int) -> int:
    return int(offset % RECORD != 0)


def test_a_torn_spool_that_is_right_passes() -> None:
    assert checks.torn_spool(cuts(whole, torn), IDS) == []


WRONG_SPOOLS = {
    "not counted": (whole, lambda _: 0),
    "always counted": (whole, lambda _: 1),
    "counted twice": (whole, lambda offset: 2 * torn(offset)),
    "takes the record before along": (lambda offset: IDS[: max(0, offset // RECORD - torn(offset))], torn),
    "delivered though torn": (lambda offset: IDS[: (offset + RECORD - 1) // RECORD], torn),
    "other order": (lambda offset: whole(offset)[::-1], torn),
    "last one lost": (lambda offset: whole(min(offset, 29)), torn),
}


@pytest.mark.parametrize(("delivered", "damaged"), WRONG_SPOOLS.values(), ids=WRONG_SPOOLS)
def test_a_torn_spool_that_is_wrong_is_caught(
    delivered: Callable[[int], Sequence[UUID]], damaged: Callable[[int], int]
) -> None:
    assert checks.torn_spool(cuts(delivered, damaged), IDS)


def entry(number: int, action: str = "heads.publish", **details: object) -> AuditEntry:
    return AuditEntry(number, NOON, "monitor", action, "linear@1/here", dict(details))


def test_a_gap_in_the_audit_log_is_caught() -> None:
    assert checks.audit_gaps([entry(1), entry(3), entry(2)]) == []
    assert len(checks.audit_gaps([entry(1), entry(3)])) == 1
    assert len(checks.audit_gaps([entry(1), entry(2), entry(2)])) == 1


def cycle(minute: int, *, log_position: int, published: int | None = None) -> Cycle:
    due = NOON + minute * MINUTE
    outcome = "keep" if published is None else "swap"
    return Cycle(
        id=new_prediction_id(),
        model_id=1,
        environment="here",
        due_at=due,
        started_at=due,
        finished_at=due,
        outcome=outcome,
        report={},
        window_samples=10,
        log_position=log_position,
        head_version=1,
        published_version=published,
    )


CYCLES = [cycle(0, log_position=10), cycle(1, log_position=20, published=2), cycle(2, log_position=30)]
AUDIT = [entry(1, "heads.publish", version=1), entry(2, "heads.swap", version=2)]


def test_cycles_that_ran_once_pass() -> None:
    assert checks.repeated_cycles(CYCLES, AUDIT) == []


WRONG_CYCLES = {
    "ran twice": ([*CYCLES, cycle(2, log_position=40)], AUDIT),
    "read nothing new": ([*CYCLES, cycle(3, log_position=30)], AUDIT),
    "read backwards": ([*CYCLES, cycle(3, log_position=25)], AUDIT),
    "swap without audit": (CYCLES, AUDIT[:1]),
    "audit twice": (CYCLES, [*AUDIT, entry(3, "heads.swap", version=2)]),
    "swap without cycle": (CYCLES, [*AUDIT, entry(3, "heads.swap", version=3)]),
    "swap twice": ([*CYCLES, cycle(3, log_position=40, published=2)], AUDIT),
}


@pytest.mark.parametrize(("cycles", "audit"), WRONG_CYCLES.values(), ids=WRONG_CYCLES)
def test_a_cycle_that_ran_twice_is_caught(cycles: list[Cycle], audit: list[AuditEntry]) -> None:
    assert checks.repeated_cycles(cycles, audit)


def test_load_that_nobody_answers_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.faults.load._GIVE_UP_SECONDS", 0.3)
    with Load(free_port(), "token", "here", threads=1) as load:
        while not load.failures:
            pass
    assert load.answers == []
    assert "resets" in checks.failed(load.failures)[0]
