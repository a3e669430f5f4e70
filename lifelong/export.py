"""The log of one environment as a Parquet or CSV file."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq

from lifelong import __version__
from lifelong_core.deploy.head import ABSTAIN
from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.store import Model, Store, Task, logged_at
from lifelong_core.store.files import replace_file
from lifelong_core.store.lifecycle.exports import LoggedPage
from lifelong_core.store.log.labels import named_revision
from lifelong_core.store.log.records import LabelRevision
from lifelong_core.values.csv_files import safe_cell
from lifelong_core.values.errors import InvalidInputError, NotFoundError

SCHEMA_VERSION = 2
CSV_SUFFIXES = (".csv", ".csv.gz")
SUFFIXES = (".parquet", *CSV_SUFFIXES)
_PAGE_VALUES = 2_000_000
"""Logits that are in memory at once, or some more."""
_LARGEST_PAGE = 20_000


def write_log(
    store: Store,
    path: Path,
    environment: str,
    *,
    model: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> int:
    """Write the predictions of an environment, all those that are in the log now; returns their number.

    They come a page at a time, by model and then by time. The file gets its name when it is whole.

    Args:
        store: with the log.
        path: of the file, whose name says its format (one of SUFFIXES); what is there is replaced.
        environment: its name.
        model: only its predictions; None: those of all models.
        since: aware; only predictions made then or later.
        until: aware; only predictions made before.

    Raises:
        NotFoundError: there is no such environment, or no such model.
        InvalidInputError: the name has another suffix, or the models differ in their number of classes, for CSV in
            their names.
        OSError: the file cannot be written.
    """
    check_suffix(path)
    if environment not in store.environments.list():
        raise NotFoundError(f"there is no environment {environment!r}.", field="ENVIRONMENT")
    models = _models(store, environment, model)
    tasks = {task.id: task for task in store.tasks.list()}
    classes = _classes([tasks[one.task_id] for one in models])
    schema = _schema(classes, _description(environment, models, tasks))
    class_names = _class_names([tasks[one.task_id] for one in models]) if _is_csv(path) else None
    log_position = store.exports.log_position()
    size = max(1, min(_LARGEST_PAGE, _PAGE_VALUES // classes))
    rows = 0
    with replace_file(path) as draft:
        # Only its owner reads it: it holds what patients were diagnosed with.
        draft.touch(mode=PRIVATE_FILE)
        with _writing(path, draft, schema, class_names) as write:
            for one in models:
                names = (*tasks[one.task_id].class_names, ABSTAIN)
                for page in store.exports.pages(
                    one.id, environment, log_position=log_position, since=since, until=until, size=size
                ):
                    write(_table(page, schema, one.reference, environment, names, classes))
                    rows += len(page.ids)
    return rows


def check_suffix(path: Path) -> None:
    """Make sure that the name of a file says a known format.

    Raises:
        InvalidInputError: it does not.
    """
    if not path.name.lower().endswith(SUFFIXES):
        raise InvalidInputError(
            f"{path.name!r} does not say a known format.",
            field="--output",
            hint=f"End the name with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.",
        )


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith(CSV_SUFFIXES)


@contextmanager
def _writing(
    path: Path, draft: Path, schema: pa.Schema, class_names: tuple[str, ...] | None
) -> Iterator[Callable[[pa.Table], None]]:
    """Open a writer of pages: CSV where class names are given, else Parquet."""
    if class_names is None:
        with pq.ParquetWriter(draft, schema, compression="zstd") as parquet:
            yield parquet.write_table
        return
    compression = "gzip" if path.name.lower().endswith(".gz") else None
    plain = _flat(schema.empty_table(), class_names).schema
    with (
        pa.output_stream(str(draft), compression=compression) as stream,
        pyarrow.csv.CSVWriter(stream, plain) as csv,
    ):
        yield lambda table: csv.write_table(_flat(table, class_names))


def _flat(table: pa.Table, class_names: tuple[str, ...]) -> pa.Table:
    """The table as CSV can hold it: a column `logit_<class>` for each class in the place of the list."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        if name == "logits":
            for k, class_name in enumerate(class_names):
                columns[f"logit_{class_name}"] = pyarrow.compute.call_function(
                    "list_element", [column, pa.scalar(k)]
                )
        else:
            columns[name] = _safe_names(column) if pa.types.is_dictionary(column.type) else column
    return pa.table(columns)


def _safe_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The names as text; all other texts of the log are hexadecimal, UUIDs and JSON lists."""
    return pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(
                chunk.indices, pa.array(map(safe_cell, chunk.dictionary.to_pylist()), pa.string())
            ).cast(pa.string())
            for chunk in column.chunks
        ],
        pa.string(),
    )


def _class_names(tasks: list[Task]) -> tuple[str, ...]:
    names = {task.class_names for task in tasks}
    if len(names) > 1:
        raise InvalidInputError(
            "the models of this environment have other class names, and a CSV file has a column for each class.",
            field="--model",
            hint="Export one model at a time, or write a .parquet file.",
        )
    return names.pop()


def _models(store: Store, environment: str, reference: str | None) -> list[Model]:
    if reference is not None:
        return [store.models.get(reference)]
    chosen = store.exports.models(environment)
    found = [model for model in store.models.list() if model.id in chosen]
    if not found:
        raise NotFoundError(f"nothing was logged in {environment!r} yet.", field="ENVIRONMENT")
    return found


def _classes(tasks: list[Task]) -> int:
    numbers = sorted({len(task.class_names) for task in tasks})
    if len(numbers) > 1:
        raise InvalidInputError(
            f"the models of this environment have {' and '.join(map(str, numbers))} classes.",
            field="--model",
            hint="Export one model at a time.",
        )
    return numbers[0]


def _description(environment: str, models: list[Model], tasks: dict[int, Task]) -> dict[str, Any]:
    """Metadata of the schema: class names and model."""
    return {
        "schema_version": SCHEMA_VERSION,
        "product_version": __version__,
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment,
        "models": {
            model.reference: {
                "task": tasks[model.task_id].name,
                "class_names": list(tasks[model.task_id].class_names),
            }
            for model in models
        },
    }


def _schema(classes: int, description: dict[str, Any]) -> pa.Schema:
    name = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("logged_at", pa.timestamp("ms", tz="UTC"), nullable=False),
            pa.field("model", name, nullable=False),
            pa.field("environment", name, nullable=False),
            pa.field("head_version", pa.int32(), nullable=False),
            pa.field("decision", pa.int32(), nullable=False),
            pa.field("decision_name", name),
            pa.field("logits", pa.list_(pa.float32(), classes)),
            pa.field("group", pa.string()),
            pa.field("label", pa.int32()),
            pa.field("label_recorded_at", pa.timestamp("us", tz="UTC")),
            pa.field("label_propensity", pa.float64()),
            pa.field("label_history", pa.string()),
        ],
        metadata={"lifelong": json.dumps(description)},
    )


def _table(
    page: LoggedPage,
    schema: pa.Schema,
    model: str,
    environment: str,
    names: tuple[str, ...],
    classes: int,
) -> pa.Table:
    rows = len(page.ids)
    columns: dict[str, Any] = {
        "id": [str(one) for one in page.ids],
        "logged_at": [logged_at(one) for one in page.ids],
        "model": [model] * rows,
        "environment": [environment] * rows,
        "head_version": page.head_versions,
        "decision": page.decisions,
        "decision_name": [names[one] if 0 <= one < len(names) else None for one in page.decisions],
        "logits": _logits(page.logits, classes),
        "group": [None if one is None else bytes(one).hex() for one in page.groups],
        "label": page.labels,
        "label_recorded_at": page.labels_recorded_at,
        "label_propensity": page.label_propensities,
        "label_history": [_history(one, names) for one in page.label_histories],
    }
    return pa.table(columns, schema=schema)


def _history(revisions: tuple[LabelRevision, ...], names: tuple[str, ...]) -> str | None:
    """Every change of a label as JSON text."""
    if not revisions:
        return None
    return json.dumps(
        [named_revision(revision, names).to_document() for revision in revisions], ensure_ascii=False
    )


def _logits(blobs: list[bytes], classes: int) -> pa.Array:
    """Rows of another length, which this model did not give, are null."""
    is_other = np.array([len(blob) != 4 * classes for blob in blobs])
    nothing = bytes(4 * classes)
    content = b"".join(nothing if other else blob for blob, other in zip(blobs, is_other, strict=True))
    values = pa.array(np.frombuffer(content, dtype="<f4"))
    return pa.FixedSizeListArray.from_arrays(values, classes, mask=pa.array(is_other))
