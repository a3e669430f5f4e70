"""`/v1/admin/knowledge` and `/v1/admin/signers`: what is known of tasks, exchanged as signed bundles."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.store.knowledge.exchange import export_bundle, import_bundle, read_signing_key
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import Name, check_name
from lifelong_service.bodies.parameters import check_parameters
from lifelong_service.documents.knowledge import (
    knowledge_document,
    knowledge_summary,
    ranker_document,
    signer_document,
)
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.knowledge import (
    ImportAnswer,
    KnowledgeDetails,
    KnowledgeList,
    RemovedEntry,
    RemovedSigner,
    SignerAnswer,
    SignerList,
)
from lifelong_service.worker.worker import Worker

BUNDLE_TYPE = "application/octet-stream"
_BUNDLE: dict[str, Any] = {BUNDLE_TYPE: {"schema": {"type": "string", "format": "binary"}}}

router = APIRouter(route_class=GuardedRoute, tags=["knowledge"])


class NewSigner(RequestDocument):
    """A signer to trust: its name here, and its public key of 64 hexadecimal digits."""

    name: Name
    public_key: str


@router.get("/v1/admin/knowledge")
@access(Scope.READ)
def list_knowledge(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Name | None = None,
) -> KnowledgeList:
    """Entries of the knowledge base by task name; `after` is `next` of the previous page."""
    check_parameters(request.query_params, ("limit", "after"))
    store = worker_of(request).store
    records = store.knowledge.list(limit + 1, after)
    state, ranker = store.knowledge.state(), store.rankers.current()
    page = records[:limit]
    return {
        "entries": [knowledge_summary(record) for record in page],
        "next": page[-1].task if len(records) > limit else None,
        "total": state.entries,
        "fingerprints": state.fingerprints,
        "transfers": state.transfers,
        "origins": dict(state.origins),
        "ranker": None if ranker is None else ranker_document(ranker, state.revision),
    }


# Before the routes of one task, which its path would match too.
@router.get(
    "/v1/admin/knowledge/export",
    response_class=Response,
    responses={
        200: {"content": _BUNDLE, "description": "The bundle, for `POST /v1/admin/knowledge/import`."}
    },
)
@access(Scope.OPERATE)
def export_knowledge(
    request: Request,
    task: Annotated[
        str | None,
        Query(description="Tasks to export, separated by commas; without it, those that were entered here."),
    ] = None,
) -> Response:
    """Entries and fingerprints as a bundle that is signed with the key of this installation.

    Fingerprints that hold features of single images are left out. Status 409: the installation has no signing key.
    """
    check_parameters(request.query_params, ("task",))
    worker = worker_of(request)
    tasks = None if task is None else [check_name(name, field="task") for name in task.split(",")]
    content = export_bundle(
        worker.store,
        worker.settings.resolved_signing_key_file,
        tasks=tasks,
        maximum_bytes=worker.settings.maximum_bundle_bytes,
        actor=actor_of(request),
    )
    headers = {"Content-Disposition": 'attachment; filename="knowledge.bundle"'}
    return Response(content, media_type=BUNDLE_TYPE, headers=headers)


@router.post(
    "/v1/admin/knowledge/import",
    openapi_extra={"requestBody": {"required": True, "content": _BUNDLE}},
)
@access(Scope.OPERATE, media_types=(BUNDLE_TYPE,), body_limit="maximum_bundle_bytes")
async def import_knowledge(
    request: Request,
    *,
    replace: Annotated[
        bool, Query(description="Replace also entries of another origin, such as local ones.")
    ] = False,
) -> ImportAnswer:
    """Import a bundle of a trusted signer, all of it or nothing.

    Refused are bundles that are damaged, forged, from a newer version or with fingerprints of an extractor that the
    knowledge base does not know (422), and those that would change entries of another origin (409).
    """
    check_parameters(request.query_params, ("replace",))
    return await run_in_threadpool(
        _import, worker_of(request), await request.body(), replace=replace, actor=actor_of(request)
    )


@router.get("/v1/admin/knowledge/{task}")
@access(Scope.READ)
def show_knowledge(request: Request, task: str) -> KnowledgeDetails:
    """One entry: its card, its trainings and its fingerprints."""
    return knowledge_document(worker_of(request).store.knowledge.get(task))


@router.put("/v1/admin/knowledge/{task}")
@access(Scope.OPERATE)
def put_knowledge(
    request: Request,
    task: str,
    entry: Annotated[
        dict[str, Any],
        Body(description="As KnowledgeEntry; fields that have a default may be left out."),
    ],
) -> KnowledgeDetails:
    """Store what is known of a task, in the place of its present entry; its fingerprints stay."""
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry

    check_name(task, field="task")
    new = KnowledgeEntry.from_document(entry)
    if new.card.name != task:
        raise InvalidInputError(
            f"the entry is of the task {new.card.name}, the address names {task}.", field="card.name"
        )
    return knowledge_document(worker_of(request).store.knowledge.put(new, actor=actor_of(request)))


@router.delete("/v1/admin/knowledge/{task}")
@access(Scope.ADMIN)
def delete_knowledge(request: Request, task: str) -> RemovedEntry:
    """Delete an entry with its fingerprints; trainings of other tasks that name it as the source stay."""
    return {"removed": worker_of(request).store.knowledge.delete(task, actor=actor_of(request)).task}


@router.get("/v1/admin/signers")
@access(Scope.READ)
def list_signers(request: Request) -> SignerList:
    """The institutions whose bundles are imported, and the public key of this one."""
    worker = worker_of(request)
    own = read_signing_key(worker.settings.resolved_signing_key_file)
    return {
        "signers": [signer_document(signer) for signer in worker.store.trusted_signers.list()],
        "own_public_key": None if own is None else own.public_key,
    }


@router.post("/v1/admin/signers", status_code=201)
@access(Scope.ADMIN)
def add_signer(request: Request, new: NewSigner) -> SignerAnswer:
    """Trust a signer. Compare the key with its owner over another channel first, such as the telephone."""
    signers = worker_of(request).store.trusted_signers
    return signer_document(signers.add(new.name, new.public_key, actor=actor_of(request)))


@router.delete("/v1/admin/signers/{name}")
@access(Scope.ADMIN)
def remove_signer(request: Request, name: str) -> RemovedSigner:
    """Stop to trust a signer; entries of its bundles stay."""
    removed = worker_of(request).store.trusted_signers.remove(name, actor=actor_of(request))
    return {"removed": removed.name}


def _import(worker: Worker, content: bytes, *, replace: bool, actor: str) -> ImportAnswer:
    imported = import_bundle(
        worker.store,
        content,
        worker.settings.resolved_signing_key_file,
        replace=replace,
        maximum_bytes=worker.settings.maximum_bundle_bytes,
        actor=actor,
    )
    return {
        "signer": imported.signer,
        "digest": imported.digest,
        "added": list(imported.outcome.added),
        "changed": list(imported.outcome.changed),
        "unchanged": list(imported.outcome.unchanged),
    }
