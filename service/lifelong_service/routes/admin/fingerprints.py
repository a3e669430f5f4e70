"""`/v1/admin/tasks/{task}/fingerprints`: fingerprints of a task, made from images that are not kept."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.entities.access import Scope
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.operations.develop.knowledge import check_known_task
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import Name
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.image_jobs import (
    MEDIA_TYPES,
    ImageRequest,
    submit_image_job,
)

_LISTS = ("kinds", "keywords")

Text = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Keyword = Annotated[str, StringConstraints(min_length=1, max_length=100)]

router = APIRouter(route_class=GuardedRoute, tags=["fingerprints"])


class FingerprintOptions(RequestDocument):
    """What to make of the images."""

    kinds: Annotated[tuple[str, ...], Field(min_length=1, max_length=8)] = ("histogram",)
    bins: Annotated[int, Field(ge=2, le=10_000)] = 100
    samples: Annotated[int, Field(ge=2, le=10_000_000)] = 10_000
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    labelled: bool = True
    most_unreadable: Annotated[float, Field(ge=0, lt=1)] = 0.05
    keywords: Annotated[tuple[Keyword, ...], Field(max_length=100)] = ()
    modality: Text | None = None
    dataset: Text | None = None


class NewFingerprint(FingerprintOptions):
    """Images by their path, below one of the folders in LIFELONG_IMAGE_ROOTS: a folder, a CSV, tar or zip file.

    `samples` images are drawn at random with `seed`. `labelled`: sub-folders, the CSV column `label` and webdataset's
    labels are classes. `most_unreadable`: largest share of unreadable images. `keywords`, `modality` and `dataset`
    become those of the task card.
    """

    path: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


_IMAGES = ImageRequest[FingerprintOptions](
    NewFingerprint,
    FingerprintOptions,
    readers=dict.fromkeys(_LISTS, _parts),
    forms=dict.fromkeys(_LISTS, ", separated by commas"),
)


@router.post(
    "/v1/admin/tasks/{task}/fingerprints",
    status_code=202,
    responses={202: {"model": JobAnswer}},
    openapi_extra=_IMAGES.openapi,
)
@access(Scope.OPERATE, media_types=MEDIA_TYPES, body_limit="maximum_upload_bytes")
async def make_fingerprint(request: Request, task: Name) -> JSONResponse:
    """Fingerprint the images of a task; the answer is a job, whose result names the fingerprints and unreadable images.

    The body is a tar or zip file with images, and the query holds the options; or it is a JSON document with the
    options and a `path` on the machine that runs jobs. An uploaded archive is deleted when the job has ended; give
    large sets by their path. The monitor needs an extractor: LIFELONG_FINGERPRINT_EXTRACTOR.
    """
    await run_in_threadpool(check_known_task, worker_of(request).store, task)
    return await submit_image_job(request, "fingerprint", _IMAGES, lambda asked: _payload(task, asked))


def _payload(task: str, asked: FingerprintOptions) -> dict[str, Any]:
    from lifelong_core.develop.fingerprints.kinds import KINDS

    kinds = sorted(set(KINDS) - {"keywords"})
    for kind in asked.kinds:
        if kind not in kinds:
            raise InvalidInputError(
                f"there is no kind {kind[:80]!r} of fingerprints of images.",
                field="kinds",
                hint=f"Kinds: {', '.join(kinds)}.",
            )
    return {"task": task, **asked.model_dump(exclude_none=True)}
