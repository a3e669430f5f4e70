"""`/v1/admin/models/{reference}/reports`: promotion reports, a new model against the current one."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import numpy as np
from fastapi import APIRouter, Query
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lifelong_core.configuration.image_roots import find_root
from lifelong_core.deploy.paired_set import CURRENT, LONGEST_NAME, PairedSet
from lifelong_core.entities.access import Scope
from lifelong_core.entities.develop.evaluations import PromotionReportDocument
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.store.evaluations.comparisons import (
    find_pair,
    find_report,
    paired_test_set,
    submit_comparison,
)
from lifelong_core.values.arrays import as_logits
from lifelong_service.bodies.json_documents import parse_document
from lifelong_service.bodies.parameters import check_parameters
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.jobs import accept_job
from lifelong_service.routes.admin.validations import (
    PART,
    REPORT_HEADERS,
    NewLabelledSet,
    labelled_set_of,
)
from lifelong_service.routes.labelled_bodies import (
    LABELLED_TYPES,
    check_columns,
    labelled_request_body,
    read_labelled,
)

router = APIRouter(route_class=GuardedRoute, tags=["validations"])


class NewPairedSet(NewLabelledSet):
    """Labelled logits of a new model, with `current_logits` (N, C), those of the current model for the same samples.

    `names` holds N names of samples, such as files: the report names those whose decision changes. `models` holds the
    references (name@version) of the new and the current model; logits of other models are refused.
    """

    current_logits: list[list[float]] | list[float]
    names: list[Annotated[str, StringConstraints(max_length=LONGEST_NAME)]] | None = None
    models: (
        Annotated[list[Annotated[str, StringConstraints(max_length=LONGEST_NAME)]], Field(max_length=2)]
        | None
    ) = None


@router.post(
    "/v1/admin/models/{reference}/reports",
    status_code=202,
    responses={202: {"model": JobAnswer}},
    openapi_extra=labelled_request_body(NewPairedSet, PART),
)
@access(Scope.OPERATE, media_types=LABELLED_TYPES, body_limit="maximum_labelled_bytes")
async def compare_models(
    request: Request,
    reference: str,
    against: str | None = None,
    origin: Annotated[str, Query(max_length=200)] = "",
    images: Annotated[str | None, Query(max_length=4096)] = None,
    replicates: Annotated[int, Query(ge=100, le=10_000)] = 1000,
    level: Annotated[float, Query(ge=0.5, lt=1)] = 0.95,
) -> JSONResponse:
    """Make the promotion report of a model against another one of its task, by default the promoted one; returns a job.

    The body holds labelled cases with the logits of both models, as npz (`logits`, `current_logits`, `labels`,
    optionally `groups`, `names`, `models` and `metadata_KEY`) or JSON. Without a body, the report is made of the test
    set of the model's training, if that kept logits of the same other model. `origin` says in words where the cases
    come from. The default heads decide. A monitor runs the job: the address in `Location` returns its state;
    then it is listed among the reports of the model. The report also counts as a validation of the new model.
    """
    check_parameters(request.query_params, ("against", "origin", "images", "replicates", "level"))
    worker = worker_of(request)
    if images is not None:
        find_root(images, worker.settings.image_roots, field="images")
    pair = await run_in_threadpool(find_pair, worker.store, reference, against)
    if _has_body(request):
        data = await read_labelled(request, PART, model=reference, from_json=_from_json, from_npz=_from_npz)
    else:
        data = await run_in_threadpool(paired_test_set, worker.store, pair)
        origin = origin or f"test split of the training of {pair.new.reference}"
    job = await run_in_threadpool(
        submit_comparison,
        worker.store,
        pair,
        data,
        origin=origin,
        images=images,
        replicates=replicates,
        level=level,
        actor=actor_of(request),
    )
    return accept_job(job)


@router.get("/v1/admin/models/{reference}/reports/{job}", responses={200: {"model": PromotionReportDocument}})
@access(Scope.READ)
def show_document(request: Request, reference: str, job: UUID) -> Response:
    """A promotion report as one JSON document; `job` is that of the comparison or the training that made it."""
    store = worker_of(request).store
    return Response(
        store.artifacts.get(find_report(store, reference, job).document), media_type="application/json"
    )


@router.get(
    "/v1/admin/models/{reference}/reports/{job}/page",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
@access(Scope.READ)
def show_page(request: Request, reference: str, job: UUID) -> Response:
    """A promotion report as a self-contained HTML page."""
    store = worker_of(request).store
    content = store.artifacts.get(find_report(store, reference, job).page)
    return Response(content, media_type="text/html", headers=REPORT_HEADERS)


def _has_body(request: Request) -> bool:
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def _from_npz(content: bytes, maximum_bytes: int, class_names: Sequence[str]) -> PairedSet:
    return PairedSet.from_bytes(content, maximum_bytes=maximum_bytes, class_names=class_names)


def _from_json(content: bytes, maximum_bytes: int, class_names: Sequence[str]) -> PairedSet:
    document = parse_document(content, NewPairedSet)
    check_columns({"names": document.names}, maximum_bytes)
    names = None if document.names is None else np.asarray(document.names)
    current = as_logits(document.current_logits, field=CURRENT)
    models: Any = document.models  # two of them, or PairedSet says so
    return PairedSet(labelled_set_of(document, maximum_bytes, class_names), current, names, models)
