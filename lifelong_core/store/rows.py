"""The one place where rows become records, and where the few values that both directions need are written."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from lifelong_core.arrays import Floats, read_only
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.errors import InvalidInputError, UnavailableError
from lifelong_core.preprocessing import Preprocessing
from lifelong_core.store.engine.columns import unpack_logits
from lifelong_core.store.records import (
    Activation,
    AuditEntry,
    CalibrationSet,
    Cycle,
    HeadPin,
    HeadRecord,
    Model,
    Prediction,
    Rejection,
    Scope,
    Task,
    Token,
    check_name,
)
from lifelong_core.store.schema.tables import DEFAULT_HEAD

REJECTION_COLUMNS = "rejection_reason", "rejected_at", "rejected_by"
Row: TypeAlias = Any
"""A row of a result: its attributes are the columns of the query."""


def now() -> datetime:
    """The present time in UTC; only the store's own rows use it."""
    return datetime.now(UTC)


def environment_key(environment: str | None) -> str:
    """How the tables of heads name an environment; None is the model's default head.

    Raises:
        InvalidInputError: the name is not legal; the empty one would be taken for the default head.
    """
    return DEFAULT_HEAD if environment is None else check_name(environment, field="environment")


def _floats(values: Any) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    read_only(array)
    return array


def task_of(row: Row) -> Task:
    """A row of `tasks`."""
    return Task(
        row.id, row.name, tuple(row.class_names), _floats(row.costs), row.promoted_model_id, row.created_at
    )


def model_of(row: Row) -> Model:
    """A row of `models`."""
    return Model(
        id=row.id,
        task_id=row.task_id,
        name=row.name,
        version=row.version,
        kind=row.kind,
        artifact=row.artifact,
        preprocessing=None if row.preprocessing is None else Preprocessing.model_validate(row.preprocessing),
        calibration_set_id=row.calibration_set_id,
        created_at=row.created_at,
    )


def calibration_set_of(row: Row) -> CalibrationSet:
    """A row of `calibration_sets`."""
    return CalibrationSet(
        row.id, row.model_id, row.digest, row.samples, _floats(row.prevalence), row.created_at
    )


def head_of(row: Row) -> HeadRecord:
    """A row of `heads`.

    Raises:
        UnavailableError: its document is not that of a head, or not of the one that was published.
    """
    try:
        head, digest = _head_in(row.document)
    except InvalidInputError as error:
        raise _damaged(row, f"its document is no head ({error})") from error
    if digest != row.digest:
        raise _damaged(row, "its document has another digest than was published")
    return HeadRecord(row.model_id, row.version, head, row.created_at, row.created_by)


# Heads never change, and with every change of the registry all that are in force are read again.
@lru_cache(maxsize=1024)
def _head_in(document: str | bytes) -> tuple[PostProcessingHead, str]:
    """The head in a document, and its digest."""
    try:
        text = document if isinstance(document, str) else document.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError("expected text in UTF-8.", field="head") from error
    head = PostProcessingHead.from_json(text)
    return head, head.digest


def _damaged(row: Row, reason: str) -> UnavailableError:
    return UnavailableError(f"head {row.version} is damaged: {reason}.", field="version")


def activation_of(row: Row) -> Activation:
    """A row of `head_activations`."""
    return Activation(
        model_id=row.model_id,
        environment=None if row.environment == DEFAULT_HEAD else row.environment,
        sequence=row.sequence,
        head_version=row.head_version,
        activated_at=row.activated_at,
        activated_by=row.activated_by,
        reason=row.reason,
        uses_default_head=row.uses_default_head,
    )


def pin_of(row: Row) -> HeadPin:
    """A row of `head_pins`."""
    environment = None if row.environment == DEFAULT_HEAD else row.environment
    return HeadPin(row.model_id, environment, row.reason, row.pinned_at, row.pinned_by)


def prediction_of(row: Row) -> Prediction:
    """A row of `predictions`."""
    return Prediction(
        id=row.id,
        model_id=row.model_id,
        environment=row.environment,
        head_version=row.head_version,
        decision=row.decision,
        logits=unpack_logits(row.logits),
        group_hash=row.group_hash,
    )


def cycle_of(row: sa.RowMapping) -> Cycle:
    """A row of `cycles`, whose columns carry the names of the fields, but for those of the rejection."""
    values: dict[str, Any] = dict(row)
    reason, at, by = (values.pop(name) for name in REJECTION_COLUMNS)
    if values["proposal"] is not None:
        values["proposal"] = PostProcessingHead.from_json(values["proposal"])
    return Cycle(**values, rejection=None if reason is None else Rejection(reason, at, by))


def cycle_row(cycle: Cycle) -> dict[str, Any]:
    """What `cycle_of` reads, of a cycle whose proposal nobody has rejected."""
    values = {**vars(cycle), "proposal": None if cycle.proposal is None else cycle.proposal.to_json()}
    del values["rejection"]
    return values


def token_of(row: Row) -> Token:
    """A row of `tokens`, without the hash of its secret."""
    return Token(
        id=row.id,
        name=row.name,
        scopes=frozenset(Scope(scope) for scope in row.scopes),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        environments=None if row.environments is None else frozenset(row.environments),
        rotated_at=row.rotated_at,
        previous_expires_at=row.previous_expires_at,
        last_used_at=row.last_used_at,
    )


def tokens_by_secret(row: Row) -> dict[bytes, Token]:
    """What the secrets of a row of `tokens` give, by their hash: the present one, and the one before a rotation."""
    token = token_of(row)
    found = {bytes(row.secret_hash): token}
    if row.previous_secret_hash is not None:
        found[bytes(row.previous_secret_hash)] = replace(token, expires_at=token.previous_expires_at)
    return found


def audit_entry_of(row: Row) -> AuditEntry:
    """A row of `audit`."""
    return AuditEntry(
        row.id,
        row.at,
        row.actor,
        row.action,
        row.subject,
        row.details,
        row.source,
        row.previous_digest,
        row.digest,
    )


def join_ids(ids: list[UUID]) -> bytes:
    """Prediction ids, 16 bytes each."""
    return b"".join(prediction_id.bytes for prediction_id in ids)


def split_ids(blob: bytes) -> list[UUID]:
    """The ids of `join_ids`."""
    return [UUID(bytes=blob[start : start + 16]) for start in range(0, len(blob), 16)]


def group_keys(ids: Sequence[UUID], groups: Sequence[bytes | None]) -> NDArray[np.generic]:
    """A key for each prediction in hexadecimal, shape (N,): that of its group, else its own id."""
    pairs = zip(ids, groups, strict=True)
    return np.array([one.hex if group is None else bytes(group).hex() for one, group in pairs], dtype=np.str_)
