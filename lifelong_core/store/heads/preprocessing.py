"""The check that a calibration set was made with the preprocessing of its model, as this installation computes it."""

import sqlalchemy as sa

from lifelong_core.entities.registry import Model
from lifelong_core.images.preprocessing_digest import check_preprocessing_digest, differs
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError
from lifelong_core.values.preprocessing import Preprocessing


class CalibratedOtherwiseError(ConflictError):
    """The active calibration set of a model was made with another preprocessing; promotion needs a reason."""

    def __init__(self, model: Model) -> None:
        super().__init__(
            f"the active calibration set of {model.reference} was made with another preprocessing document or image"
            " decoder than this installation uses for the model.",
            field="model",
            hint=f"{_calibrate(model.calibration_command)} If it is right all the same, give the reason as"
            " `force_reason` in the query (`--force-because`).",
        )


def check_set_of_model(recorded: str | None, model: Model, *, field: str = "preprocessing_digest") -> None:
    """Make sure that a calibration set was made with the preprocessing of its model; see `check_preprocessing_digest`.

    Args:
        recorded: digest of the set; None: unknown, which is accepted.
        model: its model.
        field: field of the error.

    Raises:
        OtherPreprocessingError: it was made with another one.
    """
    hint = _calibrate(model.calibration_command)
    check_preprocessing_digest(recorded, model.preprocessing, field=field, hint=hint)


def check_first_set(recorded: str | None, preprocessing: Preprocessing | None) -> None:
    """The same for a model that is not registered yet.

    Raises:
        OtherPreprocessingError: the set was made with another preprocessing.
    """
    hint = (
        "Add the model without this set, then calibrate it with images: `lifelong calibrate NAME held_out/`."
    )
    check_preprocessing_digest(recorded, preprocessing, field="preprocessing_digest", hint=hint)


def other_preprocessing(connection: sa.Connection, model: Model) -> CalibratedOtherwiseError | None:
    """The error that the active set of a model was made with another preprocessing; None: it was not, or is unknown."""
    recorded = active_digests(connection, model.id).get(model.id)
    return CalibratedOtherwiseError(model) if differs(recorded, model.preprocessing) else None


def active_digests(connection: sa.Connection, model_id: int | None = None) -> dict[int, str]:
    """Known preprocessing digests of the active calibration sets, by model id; of one model, or of all."""
    models, sets = tables.models, tables.calibration_sets
    query = (
        sa.select(models.c.id, sets.c.preprocessing_digest)
        .join(sets, sets.c.id == models.c.calibration_set_id)
        .where(sets.c.preprocessing_digest.is_not(None))
    )
    if model_id is not None:
        query = query.where(models.c.id == model_id)
    return {row.id: row.preprocessing_digest for row in connection.execute(query)}


def _calibrate(command: str) -> str:
    return f"Calibrate it again with images, through the service that will serve it: `{command}`."
