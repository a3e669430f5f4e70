"""Jobs on images of a request: an archive in its body, or a path on the machine that runs jobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Generic, TypeVar

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.configuration.image_roots import find_root
from lifelong_core.store import Job, Store
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.validation_errors import as_input_error
from lifelong_service.bodies.json_documents import parse_document
from lifelong_service.bodies.limits import media_type
from lifelong_service.bodies.parameters import check_parameters
from lifelong_service.bodies.parsing import parse_in_turn
from lifelong_service.bodies.uploads import ARCHIVE_TYPES, archive_form, receive_file
from lifelong_service.guard.access import actor_of, worker_of
from lifelong_service.routes.admin.jobs import accept_job

JSON = "application/json"
MEDIA_TYPES = (JSON, *ARCHIVE_TYPES)
"""Of requests with images."""
_BINARY = {"schema": {"type": "string", "format": "binary"}}

Options = TypeVar("Options", bound=RequestDocument)


@dataclass(frozen=True)
class ImageRequest(Generic[Options]):
    """The two forms of a request with images.

    Attributes:
        document: JSON body with the options and the `path` of the images.
        options: the same options, from the query of a request whose body is an archive.
        readers: values from the texts of query parameters, where the text itself is not the value.
        forms: how these texts are written, by parameter, for the OpenAPI document.
    """

    document: type[Options]
    options: type[Options]
    readers: Mapping[str, Callable[[str], Any]] = field(default_factory=dict[str, Callable[[str], Any]])
    forms: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def openapi(self) -> dict[str, Any]:
        """The OpenAPI entry: body and query."""
        document = self.document.__name__
        return {
            "requestBody": {
                "required": True,
                "content": {
                    JSON: {"schema": {"$ref": f"#/components/schemas/{document}"}},
                    **dict.fromkeys(ARCHIVE_TYPES, _BINARY),
                },
            },
            "parameters": [
                {
                    "name": name,
                    "in": "query",
                    "required": False,
                    "schema": {"type": "string"},
                    "description": f"Of an archive: as in {document}{self.forms.get(name, '')}.",
                }
                for name in self.options.model_fields
            ],
        }

    def from_query(self, request: Request) -> Options:
        """The options of an archive.

        Raises:
            InvalidInputError: a parameter is unknown or has another form; the field names it.
        """
        check_parameters(request.query_params, tuple(self.options.model_fields))
        given: dict[str, Any] = dict(request.query_params)
        given |= {name: read(given[name]) for name, read in self.readers.items() if name in given}
        try:
            return self.options.model_validate(given, strict=False)
        except ValidationError as error:
            raise as_input_error(error, self.options) from error


async def submit_image_job(
    request: Request,
    kind: str,
    images: ImageRequest[Options],
    payload_of: Callable[[Options], dict[str, Any]],
) -> JSONResponse:
    """Submit a job on the images of a request; the answer is status 202 with the job.

    Args:
        request: its body is read.
        kind: of the job.
        images: the forms of the request.
        payload_of: from the document or the options to the payload without the place of the images; runs in a thread.

    Raises:
        InvalidInputError: the document or the query is not valid, or the path is outside the folders of images.
        UnavailableError: the disk cannot take the archive, or the database does not answer.
    """
    worker, actor = worker_of(request), actor_of(request)
    if (media_type(request.headers) or JSON) == JSON:
        check_parameters(request.query_params, ())
        content = await request.body()
        asked: Any = await parse_in_turn(lambda: parse_document(content, images.document), len(content))
        find_root(asked.path, worker.settings.image_roots)
        payload = await run_in_threadpool(payload_of, asked) | {"path": asked.path}
        return accept_job(await run_in_threadpool(_insert, worker.store, kind, payload, None, actor))
    payload = await run_in_threadpool(payload_of, images.from_query(request))
    async with receive_file(request, worker.settings.data_directory) as file:
        payload["archive"] = archive_form(file)
        return accept_job(await run_in_threadpool(_insert, worker.store, kind, payload, file, actor))


def _insert(store: Store, kind: str, payload: dict[str, Any], upload: BinaryIO | None, actor: str) -> Job:
    return store.jobs.submit(kind, payload, upload=upload, actor=actor)
