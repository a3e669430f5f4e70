"""`/v1/admin/models/{reference}/validations`: validation of models; result and report of its jobs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from uuid import UUID

import numpy as np
from fastapi import APIRouter, Query
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.entities.access import Scope
from lifelong_core.entities.develop.evaluations import ValidationDocument
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.store import Job, Store
from lifelong_core.store.evaluations.validations import submit_validation
from lifelong_core.values.arrays import as_logits, read_labels
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.values.names import MAXIMUM_GROUP_LENGTH, Name
from lifelong_core.values.uncertainties import FEWEST_MEMBERS, MOST_MEMBERS, UncertaintyKind
from lifelong_service.bodies.json_documents import parse_document
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.jobs import accept_job
from lifelong_service.routes.labelled_bodies import (
    LABELLED_TYPES,
    LabelledRows,
    check_columns,
    labelled_request_body,
    read_labelled,
)

if TYPE_CHECKING:
    from lifelong_core.design import UncertaintySettings

PART = "labelled_set"
"""Part of a multipart form, and the name of the file in errors."""

Numbers: TypeAlias = Annotated[str, Query(max_length=1000, description="Ascending, separated by commas.")]

PARAMETERS = {
    "sigmas": "sigma",
    "dampings": "damping",
    "threshold": "uncertainty_threshold",
    "kind": "uncertainty_kind",
}
"""Query parameters by the settings of uncertainty-aware scores."""

REPORT_HEADERS = {
    # A report is self-contained: injected content can neither fetch nor run anything.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}

router = APIRouter(route_class=GuardedRoute, tags=["validations"])


class NewLabelledSet(LabelledRows):
    """Labelled logits: (N, C) raw outputs, N labels, and optionally N group keys (patients) and metadata.

    `metadata` holds N values by key, such as `{"scanner": ["A", "B", ...]}`: the subgroups of the report. In a task of
    two classes, `uncertainties` holds N numbers that are not negative, or `members` the logits (N, C) of the same
    samples by several models, dropout draws or augmentations, whose spread is the uncertainty.
    """

    metadata: dict[str, list[Any]] = Field(default_factory=dict)
    uncertainties: list[float] | None = None
    members: Annotated[
        list[list[list[float]]] | None, Field(min_length=FEWEST_MEMBERS, max_length=MOST_MEMBERS)
    ] = None


@router.post(
    "/v1/admin/models/{reference}/validations",
    status_code=202,
    responses={202: {"model": JobAnswer}},
    openapi_extra=labelled_request_body(NewLabelledSet, PART),
)
@access(Scope.OPERATE, media_types=LABELLED_TYPES, body_limit="maximum_labelled_bytes")
async def validate_model(
    request: Request,
    reference: str,
    environment: Name | None = None,
    replicates: Annotated[int, Query(ge=100, le=10_000)] = 1000,
    level: Annotated[float, Query(ge=0.5, lt=1)] = 0.95,
    sigma: Numbers | None = None,
    damping: Numbers | None = None,
    uncertainty_threshold: float | None = None,
    uncertainty_kind: UncertaintyKind | None = None,
    aggregate: Literal["pooled", "by-group"] = "pooled",
) -> JSONResponse:
    """Validate a model on labelled logits (npz or JSON) with the metrics recommended for its task; returns a job.

    An npz file holds `logits`, `labels`, optionally `groups`, and metadata as `metadata_KEY`. The head of `environment`
    (else the default head) decides; `replicates` and `level` are those of the bootstrap intervals. A monitor runs the
    job: the address in `Location` returns its state. With `aggregate=by-group` metrics are those of each group, such as
    a patient, and then their mean over the groups; the set then needs groups.

    In a task of two classes, the set may also hold `uncertainties`, or the logits of members (npz: `logits_1`,
    `logits_2`, ...; JSON: `members`). The result then has uncertainty-aware scores (Sperling et al.) for each spread
    `sigma` of the threshold `uncertainty_threshold` and each damping factor `damping`: numbers separated by commas.
    `uncertainty_kind` says what the uncertainties are.
    """
    worker = worker_of(request)
    uncertainty = _settings(
        sigmas=sigma, dampings=damping, threshold=uncertainty_threshold, kind=uncertainty_kind
    )
    data = await read_labelled(request, PART, model=reference, from_json=_from_json, from_npz=_from_npz)
    job = await run_in_threadpool(
        submit_validation,
        worker.store,
        reference,
        data,
        environment=environment,
        replicates=replicates,
        level=level,
        actor=actor_of(request),
        uncertainty=uncertainty,
        by_group=aggregate == "by-group",
    )
    return accept_job(job)


@router.get("/v1/admin/jobs/{job}/result", responses={200: {"model": ValidationDocument}})
@access(Scope.READ)
def show_result(request: Request, job: UUID) -> Response:
    """The result of a validation or a comparison as one JSON document; status 409 until it is complete."""
    content = artifact_of(worker_of(request).store, job, "result")
    return Response(content, media_type="application/json")


@router.get(
    "/v1/admin/jobs/{job}/report",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
@access(Scope.READ)
def show_report(request: Request, job: UUID) -> Response:
    """The result of a validation or a comparison as a self-contained HTML page; status 409 until it is complete."""
    content = artifact_of(worker_of(request).store, job, "report")
    return Response(content, media_type="text/html", headers=REPORT_HEADERS)


@router.get(
    "/v1/admin/validations/{validation}/report",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
@access(Scope.READ)
def show_validation_report(request: Request, validation: UUID) -> Response:
    """The report of a validation as a self-contained HTML page; it stays when its job is deleted."""
    store = worker_of(request).store
    report = store.evaluations.get(validation).report
    if report is None:
        raise NotFoundError("this validation has no report.", field="validation")
    return Response(store.artifacts.get(report), media_type="text/html", headers=REPORT_HEADERS)


def _settings(**given: Any) -> "UncertaintySettings | None":
    """The settings of uncertainty-aware scores; None: no query parameter names one.

    Raises:
        InvalidInputError: a value does not fit; the field names the parameter.
    """
    if not any(value is not None for value in given.values()):
        return None
    from lifelong_core.design import UncertaintySettings

    return UncertaintySettings.of_options(given, PARAMETERS)


def _from_npz(content: bytes, maximum_bytes: int, class_names: Sequence[str]) -> LabelledSet:
    return LabelledSet.from_bytes(content, maximum_bytes=maximum_bytes, class_names=class_names)


def _from_json(content: bytes, maximum_bytes: int, class_names: Sequence[str]) -> LabelledSet:
    return labelled_set_of(parse_document(content, NewLabelledSet), maximum_bytes, class_names)


def labelled_set_of(document: NewLabelledSet, maximum_bytes: int, class_names: Sequence[str]) -> LabelledSet:
    """The arrays of a JSON body, with the group keys as they are.

    Raises:
        InvalidInputError: an array or the metadata do not fit; the field names them.
        PayloadTooLargeError: the arrays would take more than `maximum_bytes`.
    """
    columns = {f"metadata.{key}": values for key, values in document.metadata.items()}
    check_columns({"labels": document.labels, "groups": document.groups, **columns}, maximum_bytes)
    groups = None if document.groups is None else np.asarray(document.groups)
    labels: Any = read_labels(document.labels, class_names)
    labelled = LabeledLogits(as_logits(document.logits), labels, groups)
    for key, values in document.metadata.items():
        if any(isinstance(value, str) and len(value) > MAXIMUM_GROUP_LENGTH for value in values):
            raise InvalidInputError(
                f"expected texts of at most {MAXIMUM_GROUP_LENGTH} characters.", field=f"metadata.{key[:80]}"
            )
    metadata: Any = document.metadata  # which checks that lists are columns
    uncertainties: Any = document.uncertainties
    members: Any = document.members
    return LabelledSet(labelled, metadata, uncertainties, members)


def artifact_of(store: Store, identifier: UUID, name: str) -> bytes:
    """Return an artifact of a job.

    Raises:
        NotFoundError: there is no such job, or it has no such artifact.
        ConflictError: it has not ended yet, or failed.
    """
    job = store.jobs.get(identifier)
    _expect_success(job)
    digest = (job.result or {}).get(name)
    if not isinstance(digest, str):
        raise NotFoundError(f"a job of the kind {job.kind} makes no {name}.", field="job")
    return store.artifacts.get(digest)


def _expect_success(job: Job) -> None:
    if job.state == "failed":
        error = job.error or {}
        raise ConflictError(f"the job failed: {error.get('message')}", field="job", hint=error.get("hint"))
    if job.state == "cancelled":
        raise ConflictError(
            f"the job was cancelled by {job.cancelled_by}.", field="job", hint="Submit it again."
        )
    if job.state != "succeeded":
        raise ConflictError(
            f"the job is {job.state}.", field="job", hint=f"Ask again later: GET /v1/admin/jobs/{job.id}."
        )
