"""`/v1/admin/models/{reference}/calibration-sets`: labelled logits, and the first head fitted on them."""

import struct
import tokenize
import zipfile
import zlib
from io import BytesIO
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request

from lifelong_core.arrays import as_labels, as_logits
from lifelong_core.deploy import LabeledLogits, quantifier
from lifelong_core.errors import InvalidInputError, NotFoundError, PayloadTooLargeError, UnidentifiableError
from lifelong_core.settings import Settings
from lifelong_core.store import Store, register_calibration
from lifelong_core.store.records import Scope
from lifelong_service.bodies import media_type, parsed
from lifelong_service.documents import calibration_set_document
from lifelong_service.guard import GuardedRoute, access, actor_of, worker_of
from lifelong_service.parameters import check_fields

NPZ_TYPES = ("application/x-npz", "application/octet-stream", "application/zip")
FILE_PARTS = ("calibration_set", "file")

_CORRUPT = (
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zlib.error,
    RuntimeError,
    OverflowError,
    MemoryError,
)
"""What zipfile and numpy raise beside ValueError: the headers of arrays are Python expressions, entries may be
encrypted, compressed in ways that nobody knows, or claim any size."""

router = APIRouter(route_class=GuardedRoute, tags=["calibration sets"])


class NewCalibrationSet(BaseModel):
    """Labelled logits: (N, C) raw outputs, N class indices, and perhaps N group keys (patients)."""

    model_config = ConfigDict(extra="forbid")

    logits: list[list[float]]
    labels: list[int]
    groups: list[str] | None = None


@router.get("/v1/admin/models/{reference}/calibration-sets")
@access(Scope.READ)
def list_calibration_sets(request: Request, reference: str) -> dict[str, Any]:
    """The calibration sets of a model; `active` is the one that heads and quantifiers are fitted on."""
    store = worker_of(request).store
    model = store.models.get(reference)
    sets = store.calibration_sets.list(model.reference)
    return {
        "active": model.calibration_set_id,
        "calibration_sets": [calibration_set_document(record) for record in sets],
    }


@router.get("/v1/admin/models/{reference}/calibration-sets/{identifier}")
@access(Scope.READ)
def show_calibration_set(
    request: Request, reference: str, identifier: Annotated[int, Path(ge=1, le=2**31 - 1)]
) -> dict[str, Any]:
    """One calibration set."""
    store = worker_of(request).store
    model = store.models.get(reference)
    record = store.calibration_sets.get(identifier)
    if record.model_id != model.id:
        raise NotFoundError(
            f"the model {model.reference} has no calibration set {identifier}.", field="identifier"
        )
    return calibration_set_document(record)


@router.post(
    "/v1/admin/models/{reference}/calibration-sets",
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/NewCalibrationSet"}},
                **{kind: {"schema": {"type": "string", "format": "binary"}} for kind in NPZ_TYPES},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "properties": {FILE_PARTS[0]: {"type": "string", "format": "binary"}},
                        "required": [FILE_PARTS[0]],
                    }
                },
            },
        }
    },
)
@access(
    Scope.OPERATE,
    media_types=("application/json", *NPZ_TYPES, "multipart/form-data"),
    body_limit="maximum_model_bytes",
)
async def add_calibration_set(request: Request, reference: str) -> dict[str, Any]:
    """Store labelled logits (npz, or JSON), fit a head on them and publish it as the model's default head.

    The model is promoted when its task serves none yet.
    """
    worker = worker_of(request)
    actor = actor_of(request)
    kind = media_type(request.headers)
    if kind == "multipart/form-data":
        async with request.form(max_files=1, max_fields=8) as form:
            check_fields(form, FILE_PARTS)
            parts = [part for part in form.values() if isinstance(part, UploadFile)]
            body = await parts[0].read() if parts else b""
    else:
        body = await request.body()
    return await run_in_threadpool(
        _add, worker.store, worker.settings, reference, body, actor, json=kind == "application/json"
    )


def _add(
    store: Store, settings: Settings, reference: str, body: bytes, actor: str, *, json: bool
) -> dict[str, Any]:
    if json:
        document = parsed(body, NewCalibrationSet)
        logits, labels = as_logits(document.logits), np.asarray(document.labels)
        groups = None if document.groups is None else np.asarray(document.groups)
        labelled = LabeledLogits(logits, as_labels(labels, classes=logits.shape[1]), groups)
    else:
        labelled = _unpacked(body, settings.maximum_model_bytes)
    model = store.models.get(reference)
    _check_quantifiable(labelled, settings.quantifier)
    head = register_calibration(store, model.reference, labelled, actor=actor)
    model = store.models.get(model.reference)
    record = store.calibration_sets.get(model.calibration_set_id or 0)
    return calibration_set_document(record) | {"model": model.reference, "head_version": head.version}


def _check_quantifiable(labelled: LabeledLogits, method: str) -> None:
    """Turn away a set from which no cycle could estimate a prevalence, before its head serves.

    PACC compares the classes' mean probabilities, which takes milliseconds. What it cannot tell apart, the method of
    the monitor perhaps can: only then it is worth its time.

    Raises:
        UnidentifiableError: classes look exactly alike.
    """
    if not labelled.counts.all():
        return  # the registration says by name which class lacks
    try:
        quantifier("PACC").fit(labelled)
    except UnidentifiableError:
        try:
            quantifier(method).fit(labelled)
        except UnidentifiableError as error:
            raise UnidentifiableError(
                error.message,
                field="logits",
                mend="Check that these are the model's logits, and that the classes can be told apart by them.",
            ) from error


def _unpacked(body: bytes, limit: int) -> LabeledLogits:
    try:
        _check_unpacked_size(body, limit)
        return LabeledLogits.from_bytes(body)
    except _CORRUPT as error:
        raise InvalidInputError(
            "the npz file is corrupt.",
            field="calibration_set",
            mend="Write it with numpy.savez(file, logits=..., labels=...).",
        ) from error


def _check_unpacked_size(body: bytes, limit: int) -> None:
    """A few kilobytes of npz can unpack to gigabytes; its directory says so beforehand."""
    try:
        with zipfile.ZipFile(BytesIO(body)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        return  # the reader says better what is wrong
    if unpacked > limit:
        raise PayloadTooLargeError(
            f"the npz file unpacks to {unpacked} bytes, at most {limit} are taken.",
            field="calibration_set",
            mend="Send fewer samples, or raise LIFELONG_MAXIMUM_MODEL_BYTES.",
        )
