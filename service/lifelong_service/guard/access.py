"""The access rule of a route, and the caller of a request."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.access import Scope as TokenScope
from lifelong_core.entities.access import Token
from lifelong_core.operations.operation import Answer, Call, Context
from lifelong_core.store.access.audit_log import LOCAL, REFUSED_UPLOAD
from lifelong_core.values.errors import LifelongError
from lifelong_service.bodies.limits import LimitedReceive
from lifelong_service.clients.addresses import ANONYMOUS, network_of, normalised_address
from lifelong_service.transport.connections import NOTE_OWNER, Owner
from lifelong_service.worker.worker import Worker

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
BodyLimit: TypeAlias = Literal[
    "maximum_body_bytes",
    "maximum_labelled_bytes",
    "maximum_model_bytes",
    "maximum_bundle_bytes",
    "maximum_upload_bytes",
]
Limits: TypeAlias = Literal["token", "queue"] | None
OpeningSetting: TypeAlias = Literal["open_access", "open_metrics"]
_PARSED = ("application/json", "application/x-www-form-urlencoded")
"""Content types that are parsed to Python objects, many times as large as the body."""
_LONGEST_REQUEST = 80
_LONGEST_MESSAGE = 200
_ARRAYS = ("application/x-npy", "application/x-npz")


@dataclass(frozen=True)
class Access:
    """Access rule of a route.

    Attributes:
        scope: required scope of the token; None: no token is required.
        opens: setting that makes the token optional; None: there is none.
        media_types: permitted content types of the body; a name that ends in "/" permits all its subtypes. A body
            without a content type is read as the first one.
        body_limit: setting with the largest body; JSON and forms are also limited by `maximum_json_bytes`.
        limits: `token`: calls count towards the limits of their token; `queue`: they also need room in the queue of
            the micro-batcher; None: neither.
    """

    scope: TokenScope | None
    opens: OpeningSetting | None = None
    media_types: tuple[str, ...] = ("application/json",)
    body_limit: BodyLimit = "maximum_body_bytes"
    limits: Limits = None

    def accepts(self, media_type: str) -> bool:
        """Whether a body may have this content type; empty: none is given."""
        return not media_type or any(
            media_type == accepted or (accepted.endswith("/") and media_type.startswith(accepted))
            for accepted in self.media_types
        )

    def parses(self, media_type: str) -> bool:
        """Whether a body of this content type is parsed to Python objects; empty: none is given."""
        return (media_type or self.media_types[0]) in _PARSED

    def limit_body(
        self, receive: Receive, headers: Headers, media_type: str, settings: Settings
    ) -> LimitedReceive:
        """Return the body of a request with these headers and this content type, within its limit."""
        setting, hint = self.body_limit, "Send less"
        maximum: int = getattr(settings, setting)
        if self.parses(media_type) and settings.maximum_json_bytes < maximum:
            setting, maximum = "maximum_json_bytes", settings.maximum_json_bytes
            hint = next((f"Send {kind}, send less" for kind in _ARRAYS if self.accepts(kind)), hint)
        return LimitedReceive(receive, headers, maximum_bytes=maximum, setting=setting, hint=hint)


def access(
    scope: TokenScope | None,
    *,
    opens: OpeningSetting | None = None,
    media_types: tuple[str, ...] = ("application/json",),
    body_limit: BodyLimit = "maximum_body_bytes",
    limits: Limits = None,
) -> Callable[[Endpoint], Endpoint]:
    """Decorate an endpoint with its `Access`, which every guarded route needs."""

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.__access__ = Access(scope, opens, media_types, body_limit, limits)  # pyright: ignore[reportFunctionMemberAccess]
        return endpoint

    return mark


def client_address(request: Request) -> str:
    """IP address of the client: the peer, or the one that a trusted proxy names; `local` on a Unix socket."""
    if request.client is None:
        return LOCAL
    return normalised_address(request.client.host)


def worker_of(request: Request) -> Worker:
    """Return the worker of this process."""
    return request.app.state.worker


def actor_of(request: Request) -> str:
    """Return the name of the caller's token, for the audit log and for limits."""
    token: Token | None = request.state.token
    return token.name if token is not None else ANONYMOUS


def context_of(request: Request) -> Context:
    """Return the store, the settings and the actor with which an operation of this request is carried out."""
    worker = worker_of(request)
    # The rest of the time of the request is for the answer.
    patience_seconds = worker.settings.request_timeout_seconds / 2
    token: Token | None = request.state.token
    return Context(
        worker.store,
        worker.settings,
        actor_of(request),
        patience_seconds,
        may_see_groups=token is not None and token.allows(TokenScope.OPERATE),
    )


def carry_out(request: Request, call: Call[Answer]) -> Answer:
    """Carry an operation out for the token of a request.

    Raises:
        LifelongError: the operation refuses.
    """
    return call.operation(context_of(request), call)


def note_refusal(request: Request, error: LifelongError, *, action: str) -> None:
    """Count a refused request for the audit log, unless the log has it already.

    Args:
        request: the request; an accepted token is in `state.token`.
        error: reason of the refusal.
        action: attempted action, one of `REFUSALS`.
    """
    if error.is_audited:
        return
    token: Token | None = getattr(request.state, "token", None)
    path = getattr(request.scope.get("route"), "path", request.scope["path"])
    worker_of(request).refusals.count(
        action,
        actor=error.actor or (ANONYMOUS if token is None else token.name),
        source=client_address(request),
        reason=error.code,
        request=f"{request.method} {path}"[:_LONGEST_REQUEST],
        message=error.message[:_LONGEST_MESSAGE] if action == REFUSED_UPLOAD else None,
    )


def note_owner(request: Request) -> None:
    """Count the connection for the token, else for the address that a trusted proxy may have named."""
    if (note := request.scope.get(NOTE_OWNER)) is not None:
        token: Token | None = request.state.token
        note(Owner.token(token.name) if token is not None else Owner(network_of(client_address(request))))
