"""A new model in the body of a request: its document, its graph, and the weights beside the graph."""

import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from lifelong_core.configuration.plausibility import check_normalisation
from lifelong_core.entities.registry import ModelAnswer, ModelKind
from lifelong_core.operations.models import model_answer
from lifelong_core.runtime.graph_check import Precision, check_new_graph
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError, UnavailableError
from lifelong_core.values.names import Name
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.bodies.json_documents import parse_document
from lifelong_service.bodies.limits import media_type
from lifelong_service.bodies.parameters import check_fields
from lifelong_service.bodies.parsing import parse_in_turn
from lifelong_service.guard.access import actor_of, worker_of
from lifelong_service.worker.worker import Worker

MAXIMUM_DATA_FILES = 1000
"""Parts `external_data` of one graph; large exporters write one file per weight."""
MEDIA_TYPES = ("application/json", "multipart/form-data")
_GRAPH = "graph.onnx"
_SHARE_FOR_CHECK = 0.75
"""Share of a request's time limit for the check; the rest is for the answer with the reason."""
_ONE_CHECK = threading.Lock()

OPENAPI = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["document"],
                    "properties": {
                        "document": {"type": "string", "description": "A NewModel as JSON."},
                        "onnx": {"type": "string", "format": "binary"},
                        "external_data": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "The files with the weights that the graph names, by their file names.",
                        },
                    },
                }
            },
            "application/json": {"schema": {"$ref": "#/components/schemas/NewModel"}},
        },
    }
}
"""The OpenAPI entry of the body."""


class NewModel(RequestDocument):
    """A model of a task; `preprocessing` belongs to kind onnx and defaults to RGB in 0..1 at the image's own size.

    With `precision` half, the graph is converted to half precision, and the converted one is stored: calibrate the
    model with logits that this service computes from images.
    """

    task: Name
    name: Name
    kind: ModelKind = "onnx"
    preprocessing: Preprocessing | None = None
    precision: Precision = "graph"
    force_reason: str | None = Field(
        None,
        description="Why a mean or a standard deviation that looks like a mistake is right; kept in the audit log.",
    )


async def register_model(request: Request) -> ModelAnswer:
    """Register the model of a request.

    Raises:
        NotFoundError: there is no such task.
        InvalidInputError: a part is missing or not valid, or the graph does not fit task and preprocessing.
        PayloadTooLargeError: the document is too large.
        UnavailableError: another graph is being checked, or the database or the artifacts do not answer.
        ConflictError: the name belongs to a model of another task.
    """
    worker = worker_of(request)
    actor = actor_of(request)
    if media_type(request.headers) != "multipart/form-data":
        new = await _document(await request.body())
        return await run_in_threadpool(_register, worker, new, None, actor)
    async with request.form(max_files=2 + MAXIMUM_DATA_FILES, max_fields=8) as form:
        check_fields(form, ("document", "onnx", "external_data"), repeatable=("external_data",))
        new = await _document(await _part(form.get("document"), worker.settings.maximum_json_bytes))
        with tempfile.TemporaryDirectory(prefix="lifelong-upload-") as folder:
            graph = await run_in_threadpool(_unpack, form, Path(folder))
            return await run_in_threadpool(_register, worker, new, graph, actor)


async def _document(content: bytes) -> NewModel:
    return await parse_in_turn(lambda: parse_document(content, NewModel), len(content))


async def _part(part: UploadFile | str | None, maximum_bytes: int) -> bytes:
    if not isinstance(part, UploadFile):
        return (part or "").encode()
    if (part.size or 0) > maximum_bytes:
        raise PayloadTooLargeError(f"the document is larger than {maximum_bytes} bytes.", field="document")
    return await part.read()


def _unpack(form: FormData, folder: Path) -> Path | None:
    """Write graph and external data of a form to a folder; return the path of the graph."""
    for part in form.getlist("external_data"):
        name = part.filename if isinstance(part, UploadFile) else None
        if name is None or not re.fullmatch(r"[^/\\\0]{1,200}", name) or name in (".", "..", _GRAPH):
            raise InvalidInputError(
                f"expected a file with a plain name, got {str(name)[:80]!r}.",
                field="external_data",
                hint="Send each file under the name that the graph refers to.",
            )
        place = folder / name
        if place.exists():
            raise InvalidInputError(f"the file {name!r} is given twice.", field="external_data")
        _write(part, place)
    graph = form.get("onnx")
    if not graph or (isinstance(graph, UploadFile) and not graph.size):
        return None
    _write(graph, folder / _GRAPH)
    return folder / _GRAPH


def _write(part: UploadFile | str, place: Path) -> None:
    with place.open("wb") as file:
        if isinstance(part, UploadFile):
            shutil.copyfileobj(part.file, file, 1 << 20)
        else:
            file.write(part.encode())


def _register(worker: Worker, new: NewModel, graph: Path | None, actor: str) -> ModelAnswer:
    store = worker.store
    task = store.tasks.get(new.task)
    preprocessing, onnx = new.preprocessing, None
    if graph is not None and new.kind != "onnx":
        raise InvalidInputError(
            "an external model runs elsewhere: it has no graph here.",
            field="kind",
            hint="Leave out the graph.",
        )
    if graph is None and new.precision != "graph":
        raise InvalidInputError(
            "there is no graph to convert to half precision.",
            field="precision",
            hint="Send the graph as the part onnx, or leave out precision.",
        )
    check_normalisation(preprocessing, force_reason=new.force_reason)
    if graph is not None:
        preprocessing = preprocessing or Preprocessing.model_validate({})
        with _checking(worker):
            onnx = check_new_graph(
                store,
                graph,
                new.name,
                new.task,
                actor=actor,
                preprocessing=preprocessing,
                settings=worker.settings,
                external_data=graph.parent,
                precision=new.precision,
                timeout_seconds=worker.settings.request_timeout_seconds * _SHARE_FOR_CHECK,
            ).content
    model = store.models.add(
        new.task,
        new.name,
        kind=new.kind,
        onnx=onnx,
        preprocessing=preprocessing,
        force_reason=new.force_reason,
        actor=actor,
    )
    return model_answer(model, task)


@contextmanager
def _checking(worker: Worker) -> Iterator[None]:
    """Allow one graph check at a time: each may take gigabytes of memory."""
    patience = worker.settings.request_timeout_seconds * (1 - _SHARE_FOR_CHECK) / 2
    if not _ONE_CHECK.acquire(timeout=patience):
        raise UnavailableError("another graph is being checked.", field="onnx", hint="Try again.")
    try:
        yield
    finally:
        _ONE_CHECK.release()
