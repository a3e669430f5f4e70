"""The columns of each table and the fields of its record agree: name, type, and whether they may be null."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
import sqlalchemy as sa

from lifelong_core.entities.access import AuditEntry, ConsoleSession, Token
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.design.recommendations import AttachedRecommendation
from lifelong_core.entities.develop.rollouts import Promotion, Rollout
from lifelong_core.entities.heads import Activation, CalibrationSet, HeadPin, HeadRecord
from lifelong_core.entities.jobs import Job, LogLine
from lifelong_core.entities.labelling import LabellingPlan
from lifelong_core.entities.notifications import Notification
from lifelong_core.entities.proposals import RetrainingProposal
from lifelong_core.entities.registry import Environment, Model, ServingWorker, Task
from lifelong_core.store import Store
from lifelong_core.store.log.records import LabelRevision, Prediction
from lifelong_core.store.registry.heartbeats import Heartbeat

RECORDS: dict[str, tuple[type, str, str]] = {
    # table: its record; columns without a field; fields that are no column of that name
    "audit": (AuditEntry, "", ""),
    "calibration_sets": (CalibrationSet, "content_digest", ""),
    "console_sessions": (ConsoleSession, "id_hash token_id", "token"),
    "cycles": (Cycle, "figures rejected_at rejected_by rejection_reason", "rejection"),
    "environments": (Environment, "", ""),
    "head_activations": (Activation, "previous", ""),
    "head_pins": (HeadPin, "", ""),
    "heads": (HeadRecord, "digest document", "head"),
    "job_log": (LogLine, "job_id", ""),
    "jobs": (
        Job,
        "error held_from held_until payload progress result",
        "error_document payload_document progress_document result_document",
    ),
    "label_revisions": (LabelRevision, "logged_on", ""),
    "labelling_plans": (LabellingPlan, "", ""),
    "models": (Model, "removed_at", ""),
    "monitors": (Heartbeat, "seen_at tick_due_at tick_finished_at tick_problem tick_started_at", "tick"),
    "notifications": (Notification, "", ""),
    "predictions": (Prediction, "commit_order logged_on token_id", ""),
    "promotions": (Promotion, "", ""),
    "recommendations": (AttachedRecommendation, "task_id thresholds", "task thresholds_document"),
    "retraining_proposals": (RetrainingProposal, "", ""),
    "rollouts": (Rollout, "", ""),
    "tasks": (Task, "", ""),
    "tokens": (Token, "previous_secret_hash secret_hash", ""),
    "workers": (ServingWorker, "", "is_lost"),
}
NOT_NULL = {("head_activations", "environment"), ("head_pins", "environment")}
"""None, the default head, is the empty text, since a key has no null."""
COLUMN_TYPES: dict[type, tuple[type[sa.types.TypeEngine[Any]], ...]] = {
    bool: (sa.Boolean,),
    int: (sa.Integer,),
    float: (sa.Float,),
    str: (sa.String,),
    bytes: (sa.LargeBinary,),
    datetime: (sa.DateTime,),
    date: (sa.Date,),
    UUID: (sa.Uuid, sa.LargeBinary),
}
DOCUMENT = sa.JSON, sa.Text, sa.LargeBinary
"""Columns of all other types: documents, and packed logits."""


def parts_of(annotation: Any) -> list[Any]:
    """The classes of an annotation, with those of its alternatives."""
    if get_origin(annotation) in (Union, UnionType):
        return [part for one in get_args(annotation) for part in parts_of(one)]
    if get_origin(annotation) is Annotated:
        return parts_of(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return list({type(value) for value in get_args(annotation)})
    return [get_origin(annotation) or annotation]


def columns_of(store: Store, table: str) -> Mapping[str, Any]:
    return {column["name"]: column for column in sa.inspect(store.database.engine).get_columns(table)}


@pytest.mark.parametrize("table", RECORDS)
def test_the_columns_of_a_table_agree_with_the_fields_of_its_record(store: Store, table: str):
    record, only_columns, only_fields = RECORDS[table]
    columns, hints = columns_of(store, table), get_type_hints(record)
    names = {field.name for field in fields(record)}
    assert sorted(columns.keys() - names) == only_columns.split()
    assert sorted(names - columns.keys()) == only_fields.split()
    for name in columns.keys() & names:
        parts, column = parts_of(hints[name]), columns[name]
        expected = NoneType in parts and (table, name) not in NOT_NULL
        assert column["nullable"] == expected, name
        (first, *_) = [part for part in parts if part is not NoneType]
        assert isinstance(column["type"], COLUMN_TYPES.get(first, DOCUMENT)), name
