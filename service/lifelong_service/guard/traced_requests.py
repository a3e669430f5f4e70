"""A span around each request, in the trace of its caller (W3C traceparent); used only where tracing is on."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lifelong_core.runtime.tracing import received_context, span

_PROBES: Final = ("/livez", "/readyz", "/metrics")
_CARRIERS: Final = (b"traceparent", b"tracestate")


class TracedRequests:
    """Wraps an application. No span has the query or the body of a request: they may name a patient."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        carried = {name.decode(): value.decode() for name, value in scope["headers"] if name in _CARRIERS}
        with span(scope["method"], parent=received_context(carried)) as request:
            assert request is not None  # noqa: S101 - for the type checker: tracing is on

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    request.set_attribute("http.response.status_code", message["status"])
                await send(message)

            request.set_attribute("http.request.method", scope["method"])
            await self._app(scope, receive, noted)
            route = getattr(scope.get("route"), "path", "unmatched")
            request.update_name(f"{scope['method']} {route}")
            request.set_attribute("http.route", route)
