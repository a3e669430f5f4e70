"""`/v1/admin/tasks/{task}/fingerprints`: fingerprints of a task, made from images that are not kept."""

from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter
from pydantic import Field, StringConstraints, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.errors import InvalidInputError, NotFoundError
from lifelong_core.image_roots import find_root
from lifelong_core.names import Name
from lifelong_core.store import Job, Store
from lifelong_core.store.access.records import Scope
from lifelong_core.validation_errors import as_input_error
from lifelong_service.documents.knowledge import fingerprint_document
from lifelong_service.http.bodies import media_type, parse_document, parse_in_turn
from lifelong_service.http.guard import GuardedRoute, access, actor_of, worker_of
from lifelong_service.http.parameters import check_parameters
from lifelong_service.http.uploads import ARCHIVE_TYPES, archive_form, receive_file
from lifelong_service.routes.admin.jobs import accept_job
from lifelong_service.schemas.design import JobAnswer
from lifelong_service.schemas.knowledge import FingerprintList
from lifelong_service.schemas.requests import RequestDocument

_LISTS = ("kinds", "keywords")
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_JSON = "application/json"

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


_OPTIONS = tuple(FingerprintOptions.model_fields)


@router.post(
    "/v1/admin/tasks/{task}/fingerprints",
    status_code=202,
    responses={202: {"model": JobAnswer}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                _JSON: {"schema": {"$ref": "#/components/schemas/NewFingerprint"}},
                **dict.fromkeys(ARCHIVE_TYPES, _BINARY),
            },
        },
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "schema": {"type": "string"},
                "description": "Of an archive: as in NewFingerprint"
                + (", separated by commas." if name in _LISTS else "."),
            }
            for name in _OPTIONS
        ],
    },
)
@access(Scope.OPERATE, media_types=(_JSON, *ARCHIVE_TYPES), body_limit="maximum_upload_bytes")
async def make_fingerprint(request: Request, task: Name) -> JSONResponse:
    """Fingerprint the images of a task; the answer is a job, whose result names the fingerprints and unreadable images.

    The body is a tar or zip file with images, and the query holds the options; or it is a JSON document with the
    options and a `path` on the machine that runs jobs. An uploaded archive is deleted when the job has ended; one that
    takes longer than LIFELONG_REQUEST_TIMEOUT_SECONDS is refused, so give large sets by their path. The monitor needs
    an extractor: LIFELONG_FINGERPRINT_EXTRACTOR.
    """
    worker, actor = worker_of(request), actor_of(request)
    await run_in_threadpool(_check_task, worker.store, task)
    if (media_type(request.headers) or _JSON) == _JSON:
        check_parameters(request.query_params, ())
        content = await request.body()
        asked = await parse_in_turn(lambda: parse_document(content, NewFingerprint), len(content))
        find_root(asked.path, worker.settings.image_roots)
        payload = _payload(task, asked)
        return accept_job(await run_in_threadpool(_submit, worker.store, payload, None, actor))
    payload = _payload(task, _options(request))
    async with receive_file(request, worker.settings.data_directory) as file:
        payload["archive"] = archive_form(file)
        return accept_job(await run_in_threadpool(_submit, worker.store, payload, file, actor))


@router.get("/v1/admin/tasks/{task}/fingerprints")
@access(Scope.READ)
def list_fingerprints(request: Request, task: Name) -> FingerprintList:
    """The fingerprints of a task: one for each kind, extractor and number of bins."""
    store = worker_of(request).store
    try:
        records = store.knowledge.get(task).fingerprints
    except NotFoundError:
        _check_task(store, task)
        records = ()
    return {"task": task, "fingerprints": [fingerprint_document(record) for record in records]}


def _check_task(store: Store, task: str) -> None:
    """Check that the task is registered, or one of the knowledge base.

    Raises:
        NotFoundError: it is neither.
    """
    try:
        store.tasks.get(task)
    except NotFoundError as error:
        try:
            store.knowledge.get(task)
        except NotFoundError:
            raise error from None


def _options(request: Request) -> FingerprintOptions:
    check_parameters(request.query_params, _OPTIONS)
    given: dict[str, Any] = dict(request.query_params)
    for name in _LISTS:
        if name in given:
            given[name] = [part.strip() for part in given[name].split(",")]
    try:
        return FingerprintOptions.model_validate(given, strict=False)
    except ValidationError as error:
        raise as_input_error(error, FingerprintOptions) from error


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


def _submit(store: Store, payload: dict[str, Any], upload: BinaryIO | None, actor: str) -> Job:
    return store.jobs.submit("fingerprint", payload, upload=upload, actor=actor)
