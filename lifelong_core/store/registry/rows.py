"""Tasks and models from rows of their tables."""

from lifelong_core.preprocessing import Preprocessing
from lifelong_core.store.engine.columns import Row, unpack_floats
from lifelong_core.store.registry.records import Model, Task


def task_of(row: Row) -> Task:
    """A row of `tasks`."""
    return Task(
        row.id,
        row.name,
        tuple(row.class_names),
        unpack_floats(row.costs),
        row.promoted_model_id,
        row.created_at,
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
