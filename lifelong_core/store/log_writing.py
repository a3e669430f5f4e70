"""The hot path: the predictions of a micro-batch and the keys of its requests, in one transaction."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from lifelong_core.errors import InvalidInputError
from lifelong_core.store import tables
from lifelong_core.store.columns import pack_logits
from lifelong_core.store.commit_order import commit_order_value
from lifelong_core.store.identifiers import logged_on
from lifelong_core.store.records import LogEntry, Prediction, RequestKey
from lifelong_core.store.rows import join_ids

MAXIMUM_REQUEST_ID = 200


def insert_entries(connection: sa.Connection, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
    """Write the entries whose request is new; says for each whether it was."""
    for entry in entries:
        _check(entry)
    first_of_key: dict[RequestKey, LogEntry] = {}
    for entry in entries:
        if entry.request is not None:
            first_of_key.setdefault(entry.request, entry)
    new = _insert_requests(connection, first_of_key)
    written = tuple(
        entry.request is None or (entry.request in new and first_of_key[entry.request] is entry)
        for entry in entries
    )
    accepted = [entry for entry, is_new in zip(entries, written, strict=True) if is_new]
    rows = [_prediction_row(prediction) for entry in accepted for prediction in entry.predictions]
    if rows:
        order = commit_order_value(connection)
        connection.execute(sa.insert(tables.predictions).values(commit_order=order), rows)
    return written


def _insert_requests(connection: sa.Connection, entries: dict[RequestKey, LogEntry]) -> set[RequestKey]:
    if not entries:
        return set()
    requests = tables.requests
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    key = (requests.c.model_id, requests.c.environment, requests.c.request_id)
    statement = insert(requests).on_conflict_do_nothing().returning(*key)
    # In the same order in every process: two that write the same keys wait for each other, but never in a circle.
    ordered = sorted(
        entries.items(), key=lambda item: (item[0].model_id, item[0].environment, item[0].request_id)
    )
    result = connection.execute(statement, [_request_row(key, entry) for key, entry in ordered])
    return {RequestKey(*row) for row in result}


def _request_row(key: RequestKey, entry: LogEntry) -> dict[str, Any]:
    return {
        "model_id": key.model_id,
        "environment": key.environment,
        "request_id": key.request_id,
        "body_digest": entry.body_digest,
        "prediction_ids": join_ids([prediction.id for prediction in entry.predictions]),
        "logged_on": logged_on(entry.predictions[0].id),
    }


def _prediction_row(prediction: Prediction) -> dict[str, Any]:
    return {
        "logged_on": logged_on(prediction.id),
        "id": prediction.id,
        "model_id": prediction.model_id,
        "environment": prediction.environment,
        "head_version": prediction.head_version,
        "decision": prediction.decision,
        "logits": pack_logits(prediction.logits),
        "group_hash": prediction.group_hash,
    }


def _check(entry: LogEntry) -> None:
    if not entry.predictions:
        raise InvalidInputError("a log entry needs at least one prediction.", field="predictions")
    for prediction in entry.predictions:
        logits = prediction.logits
        if logits.dtype != np.float32 or logits.ndim != 1 or logits.size < 2 or not np.isfinite(logits).all():
            raise InvalidInputError(
                f"expected one row of at least two finite float32 logits, got {logits.dtype} {logits.shape}.",
                field="logits",
            )
    if entry.request is not None and not 0 < len(entry.request.request_id) <= MAXIMUM_REQUEST_ID:
        raise InvalidInputError(
            f"expected 1 to {MAXIMUM_REQUEST_ID} characters.",
            field="request_id",
            mend="Send a shorter request id.",
        )
