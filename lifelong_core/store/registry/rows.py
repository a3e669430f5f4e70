"""Tasks and models from rows of their tables."""

from lifelong_core.decision_rules.rules import rule_from_document
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.engine.columns import Row, read_record, unpack_floats
from lifelong_core.values.preprocessing import Preprocessing


def task_of(row: Row) -> Task:
    """A task from a row of `tasks`."""
    rule = rule_from_document(row.decision_rule)
    names, costs = tuple(row.class_names), unpack_floats(row.costs)
    return read_record(row, Task, class_names=names, costs=costs, decision_rule=rule)


def model_of(row: Row) -> Model:
    """A model from a row of `models`."""
    preprocessing = None if row.preprocessing is None else Preprocessing.model_validate(row.preprocessing)
    return read_record(row, Model, preprocessing=preprocessing)
