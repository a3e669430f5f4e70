"""`/v1/admin/knowledge/export` and `import`: what is known of tasks, exchanged as signed bundles."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.develop.knowledge import ImportAnswer
from lifelong_core.store.knowledge.exchange import export_bundle, import_bundle
from lifelong_core.values.names import check_name
from lifelong_service.bodies.parameters import check_parameters
from lifelong_service.guard.access import access, context_of
from lifelong_service.guard.route import GuardedRoute

BUNDLE_TYPE = "application/octet-stream"
_BUNDLE: dict[str, Any] = {BUNDLE_TYPE: {"schema": {"type": "string", "format": "binary"}}}

router = APIRouter(route_class=GuardedRoute, tags=["knowledge"])


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
    context = context_of(request)
    content = export_bundle(
        context.store,
        context.settings.resolved_signing_key_file,
        tasks=None if task is None else [check_name(name, field="task") for name in task.split(",")],
        maximum_bytes=context.settings.maximum_bundle_bytes,
        actor=context.actor,
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
    context, content = context_of(request), await request.body()
    return await run_in_threadpool(
        import_bundle,
        context.store,
        content,
        context.settings.resolved_signing_key_file,
        replace=replace,
        maximum_bytes=context.settings.maximum_bundle_bytes,
        actor=context.actor,
    )
