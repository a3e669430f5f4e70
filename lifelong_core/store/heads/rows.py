"""Heads, calibration sets, activations and pins from rows of their tables."""

from functools import lru_cache

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.errors import InvalidInputError, UnavailableError
from lifelong_core.store.engine.columns import Row, unpack_floats
from lifelong_core.store.heads.records import Activation, CalibrationSet, HeadPin, HeadRecord
from lifelong_core.store.names import check_name
from lifelong_core.store.schema.tables import DEFAULT_HEAD


def environment_key(environment: str | None) -> str:
    """How the tables of heads name an environment; None is the model's default head.

    Raises:
        InvalidInputError: the name is not legal; the empty one would be taken for the default head.
    """
    return DEFAULT_HEAD if environment is None else check_name(environment, field="environment")


def calibration_set_of(row: Row) -> CalibrationSet:
    """A row of `calibration_sets`."""
    return CalibrationSet(
        row.id, row.model_id, row.digest, row.samples, unpack_floats(row.prevalence), row.created_at
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
