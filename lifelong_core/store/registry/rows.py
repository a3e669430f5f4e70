"""Tasks and models from rows of their tables."""

from lifelong_core.preprocessing import Preprocessing
from lifelong_core.store.engine.columns import Row, read_record, unpack_floats
from lifelong_core.store.registry.records import Model, Task


def task_of(row: Row) -> Task:
    """A task from a row of `tasks`."""
    return read_record(row, Task, class_names=tuple(row.class_names), costs=unpack_floats(row.costs))


def model_of(row: Row) -> Model:
    """A model from a row of `models`."""
    preprocessing = None if row.preprocessing is None else Preprocessing.model_validate(row.preprocessing)
    return read_record(row, Model, preprocessing=preprocessing)
