"""Access rules of routes: token scope, then content types and body size, before a byte of the body is read."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import cached_property
from types import TracebackType
from typing import Any, TypeAlias

from fastapi.dependencies.utils import get_typed_return_annotation
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from lifelong_core.entities.access import Token
from lifelong_core.store.access.audit_log import REFUSED_ACCESS, REFUSED_UPLOAD, audit_source
from lifelong_core.values.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    LifelongError,
    NotFoundError,
    PayloadTooLargeError,
    UnauthenticatedError,
    UnsupportedMediaTypeError,
)
from lifelong_service.bodies.json_documents import NUL
from lifelong_service.bodies.limits import TIME_LIMIT, BodyPace, LimitedReceive, media_type
from lifelong_service.bodies.parsing import MEMORY_RELEASE
from lifelong_service.bodies.strict_request import StrictRequest
from lifelong_service.guard.access import (
    Access,
    actor_of,
    client_address,
    note_owner,
    note_refusal,
    worker_of,
)
from lifelong_service.worker.worker import Worker

_REPLACEMENT = "\ufffd"
"""Replacement character for bytes that are not UTF-8."""
Respond: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """A route that checks token, content type and body size before its endpoint.

    The return annotation of its endpoint is the OpenAPI schema of the answer; answers are not validated.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        options["response_model"] = None
        # Models of answers take most of the time that routes take, and serving needs none.
        super().__init__(path, endpoint, **{**options, "responses": None})
        self._options = options

    @cached_property
    def described(self) -> APIRoute:
        """This route with the models of its answers, for the description of the API."""
        answer, options = get_typed_return_annotation(self.endpoint), dict(self._options)
        if not (isinstance(answer, type) and issubclass(answer, Response)):
            status = options.get("status_code") or 200
            options["responses"] = {status: {"model": answer}, **(options.get("responses") or {})}
        return APIRoute(self.path, self.endpoint, **options)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match as the framework does; routes of GET also match HEAD."""
        return super().matches(_as_get(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle as the framework does; the server omits the body of an answer to HEAD."""
        await super().handle(_as_get(scope), receive, send)

    @property
    def access(self) -> Access:
        """The access rule of this route.

        Raises:
            TypeError: the endpoint has none.
        """
        rule = getattr(self.endpoint, "__access__", None)
        if not isinstance(rule, Access):
            raise TypeError(f"{self.path} does not say who may call it: decorate its endpoint with @access")
        return rule

    async def authorize(self, request: Request, worker: Worker) -> Token | None:
        """Return the token of a request; None where none is needed.

        Raises:
            UnauthenticatedError: it has no token, or an invalid one.
            ForbiddenError: the token lacks the scope.
            UnavailableError: the token is not known here, and the database cannot be asked.
        """
        wanted = self.access
        if wanted.scope is None or (wanted.opens is not None and getattr(worker.settings, wanted.opens)):
            return None
        header, client = request.headers.get("authorization"), client_address(request)
        return await worker.authenticator.authorize(header, wanted.scope, client=client)

    def audit(self, request: Request) -> AbstractContextManager[None]:
        """Name the client's address in audit entries of the block, and count a refused request."""
        return _Audited(self, request)

    def attempt(self, request: Request, error: LifelongError) -> str | None:
        """Return the action of a refused request for the audit log; None: it gets no entry."""
        if isinstance(error, UnauthenticatedError | ForbiddenError):
            return REFUSED_ACCESS
        is_upload = request.method == "POST" and self.access.body_limit != "maximum_body_bytes"
        is_known = getattr(request.state, "token", None) is not None
        is_refused = isinstance(error, InvalidInputError | NotFoundError | ConflictError)
        return REFUSED_UPLOAD if is_upload and is_known and is_refused else None

    def get_route_handler(self) -> Respond:
        """Return the handler of the framework, with the checks before it."""
        return self.guarded(super().get_route_handler())

    def guarded(self, respond: Respond) -> Respond:
        """Return `respond` with the checks of this route before it.

        Args:
            respond: answers a request that may be carried out, whose body is within its limits.
        """
        wanted = self.access

        async def guarded(request: Request) -> Response:
            with self.audit(request):
                return await checked(request)

        async def checked(request: Request) -> Response:
            worker, kind = worker_of(request), media_type(request.headers)
            request.state.token = await self.authorize(request, worker)
            note_owner(request)
            _check_coding(request)
            _check_media_type(kind, wanted)
            _check_texts(request)
            body = wanted.limit_body(request.receive, request.headers, kind, worker.settings)
            if wanted.scope is not None and (put_off := request.scope.get(TIME_LIMIT)):
                body.pace = BodyPace(
                    put_off,
                    seconds=worker.settings.request_timeout_seconds,
                    rate=worker.settings.minimum_body_bytes_per_second,
                )
            try:
                declared = body.check_declared()
            except PayloadTooLargeError:
                await body.discard(worker.settings.maximum_body_bytes)
                raise
            if wanted.limits is None:
                return await answered(request, body, is_parsed=wanted.parses(kind))
            name = actor_of(request)
            with worker.token_limiter.request(name):
                if wanted.limits == "queue":
                    worker.batcher.check_room(name)
                with worker.body_budget.body(name, declared) as body.share:
                    return await answered(request, body, is_parsed=wanted.parses(kind))

        async def answered(request: Request, body: LimitedReceive, *, is_parsed: bool) -> Response:
            strict = StrictRequest(request.scope, body)
            try:
                return await respond(strict)
            except Exception:
                if error := body.error or strict.error:  # the framework has replaced it
                    raise error from None
                raise
            finally:
                MEMORY_RELEASE.note(body.received, is_parsed=is_parsed)

        return guarded


class _Audited:
    """See `GuardedRoute.audit`; a class, because a generator costs each request several times as much."""

    def __init__(self, route: GuardedRoute, request: Request) -> None:
        self._route = route
        self._request = request
        self._source = audit_source(client_address(request))

    def __enter__(self) -> None:
        self._source.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, LifelongError):
                action = self._route.attempt(self._request, error)
                if action is not None:
                    note_refusal(self._request, error, action=action)
        finally:
            self._source.__exit__(kind, error, trace)


def _as_get(scope: Scope) -> Scope:
    return {**scope, "method": "GET"} if scope["type"] == "http" and scope["method"] == "HEAD" else scope


def _check_coding(request: Request) -> None:
    coding = request.headers.get("content-encoding", "identity")
    if coding.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaTypeError(
            f"the content coding {coding[:80]!r} is not accepted.",
            field="Content-Encoding",
            hint="Send the body uncompressed.",
        )


def _check_media_type(kind: str, wanted: Access) -> None:
    if not wanted.accepts(kind):
        expected = ", ".join(f"{name}*" if name.endswith("/") else name for name in wanted.media_types)
        raise UnsupportedMediaTypeError(
            f"the content type {kind[:80]!r} is not accepted here.",
            field="Content-Type",
            hint=f"Send {expected}.",
        )


def _check_texts(request: Request) -> None:
    """Check the texts of path and query: percent-encoded bytes may be invalid UTF-8."""
    for name, value in request.path_params.items():
        _check_text(value, name)
    if not request.scope["query_string"]:
        return
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        if name in seen:  # it is unclear which of the two is meant
            raise InvalidInputError(
                "the parameter is given twice.", field=name[:80], hint="Give it once in the query."
            )
        seen.add(name)
        _check_text(value, name)


def _check_text(value: str, name: str) -> None:
    if "\0" in value:
        raise InvalidInputError(f"{NUL}.", field=name[:80], hint="Remove this character.")
    if _REPLACEMENT in value:  # two patients would become one
        raise InvalidInputError(
            "the bytes behind the percent signs are not UTF-8.", field=name[:80], hint="Encode it as UTF-8."
        )
