"""Heads, calibration sets, activations and pins from rows of their tables."""

from functools import lru_cache

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.entities.heads import Activation, CalibrationSet, HeadPin, HeadRecord
from lifelong_core.store.engine.columns import Row, read_record, unpack_floats
from lifelong_core.store.schema.tables import DEFAULT_HEAD
from lifelong_core.values.errors import InvalidInputError, UnavailableError
from lifelong_core.values.names import check_name


def environment_key(environment: str | None) -> str:
    """Name of an environment in the tables of heads; None: the model's default head.

    Raises:
        InvalidInputError: the name is illegal; the empty one would mean the default head.
    """
    return DEFAULT_HEAD if environment is None else check_name(environment, field="environment")


def calibration_set_of(row: Row) -> CalibrationSet:
    """A calibration set from a row of `calibration_sets`."""
    return read_record(row, CalibrationSet, prevalence=unpack_floats(row.prevalence))


def head_of(row: Row) -> HeadRecord:
    """A head from a row of `heads`.

    Raises:
        UnavailableError: its document is not a head, or differs from the published one.
    """
    try:
        head, digest = _parse_head(row.document)
    except InvalidInputError as error:
        raise _damaged(row, f"its document is not a head ({error})") from error
    if digest != row.digest:
        raise _damaged(row, "the digest of its document is not the published one")
    return read_record(row, HeadRecord, head=head)


# Heads never change, but each change of the registry reads all active heads again.
@lru_cache(maxsize=1024)
def _parse_head(document: str | bytes) -> tuple[PostProcessingHead, str]:
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
    """An activation from a row of `head_activations`."""
    return read_record(row, Activation, environment=environment_of(row))


def pin_of(row: Row) -> HeadPin:
    """A pin from a row of `head_pins`."""
    return read_record(row, HeadPin, environment=environment_of(row))


def environment_of(row: Row) -> str | None:
    """The environment of a row in a table of heads; None: the model's default head."""
    return None if row.environment == DEFAULT_HEAD else row.environment
