"""Sends the labels of a file to `/v1/feedback` in batches, and counts the outcome of each row.

A repetition is harmless, because a stored label stays as it is.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

import httpx

from lifelong.label_import.rows import LabelRow, RejectedRow, Row, UnlabelledRow
from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.values.csv_files import csv_writer
from lifelong_core.values.errors import LifelongError, RetryableError

BATCH = 500
"""Labels of one request."""
PATIENCE_SECONDS = 300.0
_FIELD_OF_LABEL = re.compile(r"labels\.(\d+)(?:\.|$)")
_OUTCOMES = ("stored", "unchanged", "corrected")

EXAMPLES = 5
"""Rejected rows that are kept to be shown."""


class Poster(Protocol):
    """Sends a JSON document, as `lifelong.client.Client`."""

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """POST a JSON document."""
        ...


class RejectionWriter(Protocol):
    """Takes rejected rows."""

    def __call__(self, row: RejectedRow, /) -> None:
        """Write one row."""


@dataclass
class ImportOutcome:
    """Numbers of rows by what became of them.

    Attributes:
        stored: labels of predictions that had none.
        unchanged: labels that were stored before.
        corrected: labels that replace another label or propensity.
        unknown: rows whose prediction does not exist.
        refused: rows that are malformed, or whose label or environment the service refuses.
        unlabelled: rows without a label; they are neither sent nor wrong.
        examples: the first rejected rows.
        last_line: number of the last line whose outcome is known.
    """

    stored: int = 0
    unchanged: int = 0
    corrected: int = 0
    unknown: int = 0
    refused: int = 0
    unlabelled: int = 0
    examples: list[RejectedRow] = field(default_factory=list[RejectedRow])
    last_line: int = 0

    @property
    def not_stored(self) -> int:
        """Number of rows with a label that was not stored."""
        return self.unknown + self.refused

    def to_document(self) -> dict[str, Any]:
        """The numbers as JSON values, with the first rejected rows."""
        return asdict(self)


@contextmanager
def rejection_file(path: Path | None) -> Iterator[RejectionWriter]:
    """A CSV file that takes rejected rows as they come; an existing one is replaced, and only its owner reads it.

    Args:
        path: of the file; None: rows go nowhere.

    Raises:
        OSError: the file cannot be written.
    """
    if path is None:
        yield _discard
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(descriptor, "w", newline="", encoding="utf-8", buffering=1) as file:
        os.fchmod(descriptor, PRIVATE_FILE)
        names = [one.name for one in fields(RejectedRow)]
        write = csv_writer(file, names)
        yield lambda row: write([getattr(row, name) for name in names])


def _discard(row: RejectedRow) -> None:
    del row


class LabelImport:
    """Sends the labels of a file; `outcome` holds the counts so far, also after an error.

    Args:
        api: connection to the service.
        reject: takes the rows that are not stored.
        dry_run: the service stores nothing and tells what it would do.
        patience_seconds: longest wait, in total, for a service that does not take the same batch.
        sleep: waits for a number of seconds.
        on_wait: called with the error before each wait.
    """

    def __init__(
        self,
        api: Poster,
        reject: RejectionWriter,
        *,
        dry_run: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        on_wait: Callable[[RetryableError], None] = lambda _: None,
    ) -> None:
        self.outcome = ImportOutcome()
        self._api = api
        self._reject_row = reject
        self._dry_run = dry_run
        self._patience_seconds = patience_seconds
        self._sleep = sleep
        self._on_wait = on_wait
        self._was_answered = False

    def run(self, rows: Iterable[Row], on_batch: Callable[[int], None] = lambda _: None) -> ImportOutcome:
        """Send all labels; rejected rows are reported, and the others go on.

        Args:
            rows: of the file, read as they are sent.
            on_batch: called with the number of rows of each batch that is done.

        Raises:
            LifelongError: the service refuses all requests, e.g. the token, or does not answer for too long.
        """
        batch: list[Row] = []
        for row in rows:
            batch.append(row)
            if len(batch) == BATCH:
                self._handle(batch)
                on_batch(len(batch))
                batch = []
        if batch:
            self._handle(batch)
            on_batch(len(batch))
        return self.outcome

    def _handle(self, batch: Sequence[Row]) -> None:
        """Send the labels of a batch, and count all of its rows once they are done."""
        labels = [row for row in batch if isinstance(row, LabelRow)]
        rejected = [row for row in batch if isinstance(row, RejectedRow)]
        while labels:
            try:
                answer = self._send(labels)
            except LifelongError as error:
                place = _named_label(error.field, len(labels))
                if place is None:
                    raise
                # The whole request was refused because of this row.
                rejected.append(_refused(labels.pop(place), None, error.field, error.message, error.hint))
                continue
            for row, result in zip(labels, answer["labels"], strict=True):
                if (problem := self._count(row, result)) is not None:
                    rejected.append(problem)
            break
        for row in sorted(rejected, key=lambda one: one.line):
            self._reject(row)
        self.outcome.unlabelled += sum(isinstance(row, UnlabelledRow) for row in batch)
        self.outcome.last_line = batch[-1].line

    def _send(self, labels: Sequence[LabelRow]) -> dict[str, Any]:
        """Send one request, again while the service asks to try later."""
        document = {
            "labels": [row.document for row in labels],
            "partial": True,
            "dry_run": self._dry_run,
        }
        waited = 0.0
        while True:
            try:
                answer = self._api.post("/v1/feedback", document)
            except RetryableError as error:
                is_unreachable = isinstance(error.__cause__, httpx.TransportError)
                if waited >= self._patience_seconds or (is_unreachable and not self._was_answered):
                    raise
                self._was_answered = self._was_answered or not is_unreachable
                self._on_wait(error)
                seconds = min(max(1, error.retry_after_seconds), self._patience_seconds - waited)
                self._sleep(seconds)
                waited += seconds
            else:
                self._was_answered = True
                return answer

    def _count(self, row: LabelRow, result: dict[str, Any]) -> RejectedRow | None:
        outcome = result["outcome"]
        if outcome in _OUTCOMES:
            setattr(self.outcome, outcome, getattr(self.outcome, outcome) + 1)
            return None
        if outcome == "unknown":
            return _rejected(row, "unknown", "there is no such prediction.")
        error = result["error"]
        return _refused(row, error["code"], error["field"], error["message"], error["hint"])

    def _reject(self, row: RejectedRow) -> None:
        if row.reason == "unknown":
            self.outcome.unknown += 1
        else:
            self.outcome.refused += 1
        if len(self.outcome.examples) < EXAMPLES:
            self.outcome.examples.append(row)
        self._reject_row(row)


def _named_label(field: str | None, count: int) -> int | None:
    """Index of the label that an error names; None: it names none of them."""
    found = _FIELD_OF_LABEL.match(field or "")
    index = int(found[1]) if found else count
    return index if index < count else None


def _refused(
    row: LabelRow, code: str | None, field: str | None, message: str, hint: str | None
) -> RejectedRow:
    name = (field or "").rpartition(".")[2]
    reason = {
        "label": "not_a_class",
        "row": "ambiguous",
        "model": "unknown_model",
    }.get(name, {"conflict": "ambiguous", "forbidden": "forbidden"}.get(code or "", "malformed"))
    return _rejected(row, reason, " ".join(part for part in (f"{name}:", message, hint) if part))


def _rejected(row: LabelRow, reason: str, message: str) -> RejectedRow:
    ids = {name: str(row.document.get(name, "")) for name in ("prediction_id", "request_id")}
    return RejectedRow(row.line, reason, message, **ids)
