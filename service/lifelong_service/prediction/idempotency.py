"""Repeated requests: a request id that was answered before gets the same bytes again.

First answers are found in the database, in the spool, and in a file for outages.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model
from lifelong_core.store.log.recent_requests import Claim, RecentRequests
from lifelong_core.store.log.records import LogEntry, RequestKey, StoredRequest
from lifelong_core.store.spool.spool import Spool
from lifelong_core.values.errors import ConflictError, UnavailableError
from lifelong_service.prediction.batch_item import BatchItem, encode_outcome, run_stage
from lifelong_service.prediction.database_calls import DATABASE_FAILURES, DatabaseCalls
from lifelong_service.prediction.requests import LogitsRequest
from lifelong_service.prediction.snapshot import Snapshot

LookUp: TypeAlias = Callable[[set[RequestKey]], dict[RequestKey, StoredRequest]]


@dataclass(frozen=True)
class ClaimedEntries:
    """Entries of a micro-batch whose requests are claimed, so that no other worker of the machine logs other answers.

    Attributes:
        entries: as they were made.
        to_log: the entries to log. Where another worker has claimed the request before, and it is not known whether its
            answer was logged, with its predictions. Both workers may log these: by their ids they are
            in the log once.
        others: keys of requests that other entries have claimed before.
        answered: those of `others` that are answered already, unless they were erased.
    """

    entries: tuple[LogEntry, ...]
    to_log: tuple[LogEntry, ...]
    others: frozenset[RequestKey]
    answered: frozenset[RequestKey]


class AnsweredRequests:
    """Finds answered requests by their keys; used in the batcher's thread.

    Args:
        database: asked unless its circuit breaker is open.
        spool: spool of this machine.
        recent: answered requests of the last hours on this machine, for outages.
        has_backlog: whether the spool holds predictions.
    """

    def __init__(
        self,
        database: DatabaseCalls,
        spool: Spool,
        recent: RecentRequests,
        *,
        has_backlog: Callable[[], bool],
    ) -> None:
        self._database = database
        self._spool = spool
        self._recent = recent
        self._has_backlog = has_backlog

    def find(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """Return the answered requests among these keys, as far as they are known now.

        Without the database, answers of other machines are unknown. It only saves costly work: `PredictionLog` itself
        rejects repeated requests.

        Raises:
            UnavailableError: the spool cannot be read.
        """
        return self._look_up(keys)[0]

    def first_answers(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """Return the first answers to requests that the log has rejected; a missing one has been erased.

        Raises:
            UnavailableError: it cannot be looked up now. Treating the request as new would answer it twice.
        """
        answers, problem = self._look_up(keys)
        if problem is not None:
            raise UnavailableError(
                f"the first answer to this request id cannot be looked up: {problem}",
                hint="Try again later.",
            )
        return answers

    def logged_keys(self, entries: Sequence[LogEntry]) -> set[RequestKey | None]:
        """Return keys of entries that are in the log or in the spool, as far as the database tells.

        The spool checks its own keys when it is written.
        """
        keys = {entry.request for entry in entries if entry.request is not None}
        return set(self.find(keys)) if keys else set()

    def claim(self, entries: Sequence[LogEntry]) -> "ClaimedEntries":
        """Claim the requests of entries, before they are logged."""
        claims = self._recent.claim(entries)
        return ClaimedEntries(
            tuple(entries),
            tuple(_with_first_answer(entry, claims) for entry in entries) if claims else tuple(entries),
            frozenset(claims),
            frozenset(key for key, claim in claims.items() if claim.is_logged),
        )

    def settle(self, claimed: "ClaimedEntries", written: Sequence[bool]) -> None:
        """Keep the answers that were logged; forget own claims to requests that another entry has answered."""
        logged, lost, renewed = set[RequestKey](), set[RequestKey](), list[LogEntry]()
        for entry, logged_entry, is_new in zip(claimed.entries, claimed.to_log, written, strict=True):
            request = logged_entry.request
            if request is None:
                continue
            if is_new and logged_entry is entry and request in claimed.others:
                # The first answer was erased, or made to another body and not logged.
                renewed.append(logged_entry)
            elif is_new or logged_entry is not entry:
                logged.add(request)
            elif request not in claimed.others:
                lost.add(request)
        self._recent.confirm(logged)
        self._recent.replace(renewed)
        self._recent.withdraw(lost - logged)

    def withdraw(self, claimed: "ClaimedEntries") -> None:
        """Forget own claims to requests that the log refuses."""
        pairs = zip(claimed.entries, claimed.to_log, strict=True)
        own = {entry.request for entry, to_log in pairs if to_log is entry and entry.request is not None}
        self._recent.withdraw(own - claimed.others)

    def head(self, model: str, version: int) -> HeadRecord:
        """Return a head that is no longer served, for a repeated answer.

        Raises:
            UnavailableError: the database does not answer.
        """
        if (outage := self._database.outage) is not None:
            raise UnavailableError(
                f"the head {version} of {model} is needed to repeat this answer: {outage}",
                hint="Try again later.",
            )
        return self._database.call(lambda store: store.heads.get(model, version))

    def _look_up(self, keys: Collection[RequestKey]) -> tuple[dict[RequestKey, StoredRequest], str | None]:
        """Return the answered requests, and why the database could not be asked about the others."""
        # The spool first: records that are delivered during the search are then found in the database.
        answered = self._spool.find(keys) if self._has_backlog() else {}
        rest = [key for key in keys if key not in answered]
        if not rest:
            return answered, None
        problem = self._database.outage
        if problem is None:
            try:
                return answered | self._database.call(lambda store: store.predictions.requests(rest)), None
            except DATABASE_FAILURES as error:
                self._database.report_failure(error)
                problem = str(error)
        answered |= self._recent.find(rest)
        return answered, None if len(answered) == len(keys) else problem


def _with_first_answer(entry: LogEntry, claims: Mapping[RequestKey, Claim]) -> LogEntry:
    """The entry with the predictions of a first claim to the same body whose fate is unknown.

    Groups are not stored with a claim; they are part of the body.
    """
    claim = None if entry.request is None else claims.get(entry.request)
    if claim is None or claim.is_logged or claim.first.body_digest != entry.body_digest:
        return entry
    pairs = zip(claim.first.predictions, entry.predictions, strict=True)
    return replace(
        entry, predictions=tuple(replace(first, group_hash=own.group_hash) for first, own in pairs)
    )


class Idempotency:
    """Sets the outcome of repeated requests, from the logged predictions of the first one.

    The same request id with another body is a conflict. Used in the batcher's thread only.

    Args:
        answered: finds answered requests.
    """

    def __init__(self, answered: AnsweredRequests) -> None:
        self._answered = answered
        self._heads: dict[tuple[int, int], HeadRecord] = {}

    def keep_head(self, head: HeadRecord) -> None:
        """Keep a head for repetitions after it is replaced: heads are immutable and few, one per swap."""
        self._heads[head.model_id, head.version] = head

    def answer_known(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Answer repeated requests before any costly work, as far as they are known now."""
        self._answer(items, snapshot, self._answered.find, lambda item: item.keys)

    def answer_rejected(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Answer the requests whose entries the log rejected because their request ids are taken."""
        self._answer(items, snapshot, self._answered.first_answers, lambda item: item.keys[:1])

    def answer_failed(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Answer repeated logits that failed before they reached the log; the others keep their errors."""
        failed = [
            (item, item.outcome)
            for item in items
            if isinstance(item.outcome, Exception)
            and item.key is not None
            and isinstance(item.request, LogitsRequest)
        ]
        for item, _ in failed:
            item.outcome = None
        self.answer_known([item for item, _ in failed], snapshot)
        for item, error in failed:
            if item.outcome is None:
                item.outcome = error

    def _answer(
        self,
        items: Sequence[BatchItem],
        snapshot: Snapshot,
        look_up: LookUp,
        keys_of: Callable[[BatchItem], Sequence[RequestKey]],
    ) -> None:
        keyed = [item for item in items if item.outcome is None and item.keys]
        if not keyed:
            return
        try:
            stored = look_up({key for item in keyed for key in keys_of(item)})
        except Exception as error:  # noqa: BLE001 - raised to its requests
            for item in keyed:
                item.outcome = error
            return
        for item in keyed:
            answers = [stored[key] for key in keys_of(item) if key in stored]
            if answers:
                first = min(answers, key=StoredRequest.age)
                run_stage([item], lambda item, first=first: self._answer_again(item, first, snapshot))

    def _answer_again(self, item: BatchItem, stored: StoredRequest, snapshot: Snapshot) -> None:
        if stored.body_digest != item.request.body_digest():
            raise ConflictError(
                f"the request id {stored.key.request_id!r} was used for another body.",
                field="request_id",
                hint="Use a new request id for every new request.",
            )
        if len(stored.predictions) != item.request.samples:
            return  # its rows are being deleted, and the key with the last ones
        item.model = snapshot.registry.models[stored.key.model_id]
        item.head = self._head(item.model, stored.predictions[0].head_version, snapshot)
        item.predictions = stored.predictions
        item.output = item.head.head.apply(np.stack([prediction.logits for prediction in stored.predictions]))
        encode_outcome(item)

    def _head(self, model: Model, version: int, snapshot: Snapshot) -> HeadRecord:
        for (model_id, _), record in snapshot.registry.heads.items():
            if model_id == model.id and record.version == version:
                return record
        key = (model.id, version)
        if key not in self._heads:
            self._heads[key] = self._answered.head(model.reference, version)
        return self._heads[key]
