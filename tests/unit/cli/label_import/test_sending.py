"""Labels reach the service in batches, whatever single rows and outages do."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from lifelong.label_import.rows import LabelRow, RejectedRow, UnlabelledRow
from lifelong.label_import.sending import BATCH, EXAMPLES, LabelImport
from lifelong_core.values.errors import LifelongError, RetryableError, TooManyRequestsError, UnavailableError


class ServiceDouble:
    """`/v1/feedback` on a dictionary: labels 0 to 2 are classes, ids of other letters than r are unknown."""

    def __init__(self, *failures: LifelongError | None) -> None:
        self.labels: dict[str, str] = {}
        self.sizes: list[int] = []
        self.failures = list(failures)

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        assert path == "/v1/feedback"
        assert document["partial"] is True
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        labels = document["labels"]
        self.sizes.append(len(labels))
        return {
            "labels": [
                self._answer(index, label, dry_run=document["dry_run"]) for index, label in enumerate(labels)
            ]
        }

    def _answer(self, index: int, label: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        if not label["request_id"].startswith("r"):
            return {"prediction_id": None, "outcome": "unknown"}
        if label["label"] not in ("0", "1", "2"):
            error = {"code": "invalid_input", "field": f"labels.{index}.label", "message": "no.", "hint": "0"}
            return {"prediction_id": None, "outcome": "refused", "error": error}
        before = self.labels.get(label["request_id"])
        if not dry_run:
            self.labels[label["request_id"]] = label["label"]
        same = "unchanged" if before == label["label"] else "corrected"
        return {"prediction_id": str(uuid4()), "outcome": "stored" if before is None else same}


def label(line: int, request_id: str | None = None, name: str = "0") -> LabelRow:
    return LabelRow(line, {"request_id": request_id or f"r{line}", "label": name})


def importing(service: ServiceDouble, **options: Any) -> tuple[LabelImport, list[RejectedRow], list[float]]:
    rejected, waits = list[RejectedRow](), list[float]()
    return LabelImport(service, rejected.append, sleep=waits.append, **options), rejected, waits


def test_rows_are_counted_by_outcome_and_wrong_ones_are_reported_in_order() -> None:
    service = ServiceDouble()
    rows = [
        label(2),
        RejectedRow(3, "malformed", "not CSV"),
        label(4, "stranger"),
        UnlabelledRow(5),
        label(6, name="9"),
        label(7, "r2", "1"),
        label(8, "r2", "1"),
        RejectedRow(9, "malformed", "not CSV"),
    ]
    task, rejected, _ = importing(service)
    outcome = task.run(rows)
    assert (outcome.stored, outcome.unchanged, outcome.corrected) == (1, 1, 1)
    assert (outcome.unknown, outcome.refused, outcome.unlabelled, outcome.not_stored) == (1, 3, 1, 4)
    assert [(row.line, row.reason, row.request_id) for row in rejected] == [
        (3, "malformed", ""),
        (4, "unknown", "stranger"),
        (6, "not_a_class", "r6"),
        (9, "malformed", ""),
    ]
    assert outcome.examples == rejected
    assert outcome.last_line == 9


def test_a_repeated_file_is_unchanged() -> None:
    service = ServiceDouble()
    rows = [label(line) for line in range(2, 1300)]
    assert importing(service)[0].run(rows).stored == 1298
    again = importing(service)[0].run(rows)
    assert (again.stored, again.unchanged, again.not_stored) == (0, 1298, 0)


def test_a_dry_run_stores_nothing() -> None:
    service = ServiceDouble()
    assert importing(service, dry_run=True)[0].run([label(2)]).stored == 1
    assert service.labels == {}


def test_a_long_file_is_read_as_it_is_sent() -> None:
    """At no time is more than one batch read ahead of what was sent."""
    service = ServiceDouble()
    read = 0

    def stream() -> Iterator[LabelRow]:
        nonlocal read
        for line in range(2, 2 + 7 * BATCH + 10):
            read += 1
            assert read - sum(service.sizes) <= BATCH
            yield label(line)

    done: list[int] = []
    outcome = importing(service)[0].run(stream(), done.append)
    assert outcome.stored == read == 7 * BATCH + 10
    assert service.sizes == done == [*[BATCH] * 7, 10]


def test_more_wrong_rows_than_examples_are_all_reported() -> None:
    task, rejected, _ = importing(ServiceDouble())
    outcome = task.run([label(line, name="9") for line in range(2, 2 + 3 * EXAMPLES)])
    assert len(rejected) == outcome.refused == 3 * EXAMPLES
    assert outcome.examples == rejected[:EXAMPLES]


def test_a_row_that_refuses_the_whole_request_is_left_out() -> None:
    failures = [LifelongError("too odd.", field="labels.1.label"), LifelongError("odd.", field="labels.1")]
    service = ServiceDouble(*failures)
    task, rejected, _ = importing(service)
    outcome = task.run([label(line) for line in range(2, 6)])
    assert (outcome.stored, outcome.refused) == (2, 2)
    assert [row.line for row in rejected] == [3, 4]
    assert sorted(service.labels) == ["r2", "r5"]


@pytest.mark.parametrize("field", [None, "Authorization", "labels", "labels.7.label", "body"])
def test_an_error_about_no_row_stops_the_import(field: str | None) -> None:
    service = ServiceDouble(None, LifelongError("refused.", field=field))
    task, _, waits = importing(service)
    with pytest.raises(LifelongError, match=r"refused\."):
        task.run([label(line) for line in range(2, 2 + BATCH + 3)])
    assert (task.outcome.stored, task.outcome.last_line, waits) == (BATCH, BATCH + 1, [])


def test_the_import_goes_on_when_the_service_asks_to_try_later() -> None:
    busy = [
        UnavailableError("spooling.", retry_after_seconds=10),
        TooManyRequestsError(retry_after_seconds=2),
    ]
    told: list[RetryableError] = []
    task, _, waits = importing(ServiceDouble(*busy, None, busy[0]), on_wait=told.append)
    outcome = task.run([label(line) for line in range(2, 2 + 2 * BATCH)])
    assert (outcome.stored, waits) == (2 * BATCH, [10, 2, 10])
    assert told == [*busy, busy[0]]


def test_patience_ends_and_the_count_so_far_stays() -> None:
    service = ServiceDouble(None, *[UnavailableError("down.", retry_after_seconds=10)] * 9)
    task, _, waits = importing(service, patience_seconds=25)
    with pytest.raises(UnavailableError):
        task.run([label(line) for line in range(2, 2 + 2 * BATCH)])
    assert waits == [10, 10, 5]
    assert task.outcome.stored == BATCH


def unreachable() -> UnavailableError:
    error = UnavailableError("does not answer.")
    error.__cause__ = httpx.ConnectError("refused")
    return error


def test_a_service_that_was_never_reached_is_not_waited_for() -> None:
    task, _, waits = importing(ServiceDouble(unreachable()))
    with pytest.raises(UnavailableError):
        task.run([label(2)])
    assert waits == []


def test_a_service_that_restarts_is_waited_for() -> None:
    task, _, waits = importing(ServiceDouble(None, unreachable(), unreachable()))
    assert task.run([label(line) for line in range(2, 2 + BATCH + 1)]).stored == BATCH + 1
    assert waits == [1, 1]
