"""Routes of pages: a cookie holds the session, forms must come from pages of the console, and errors are pages."""

import json
import logging
import re
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from fastapi import Depends
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Token
from lifelong_core.store.access.token_lookup import check_scope
from lifelong_core.values.errors import ForbiddenError, LifelongError, NotFoundError, UnauthenticatedError
from lifelong_service.console.pages import page, see_other
from lifelong_service.guard.access import client_address
from lifelong_service.guard.errors import error_response, internal_error_response, on_http_error
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.worker.worker import Worker

COOKIE = "lifelong_console"
FORM = ("application/x-www-form-urlencoded",)
"""The content type of our forms."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none';"
        " base-uri 'none'"
    ),
    # With no-referrer, browsers send the origin 'null' for our own forms, and over plain HTTP no other header
    # distinguishes them from forms of other sites.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Default headers of every page."""

LIVE = {
    "Content-Security-Policy": f"{HEADERS['Content-Security-Policy']}; script-src 'self'; connect-src 'self'"
}
"""Headers of a page that shows the progress of jobs: it runs our script, which loads the page again."""

logger = logging.getLogger(__name__)


async def _read(request: Request) -> FormData:
    return await request.form()


Form: TypeAlias = Annotated[FormData, Depends(_read)]
"""The fields of a sent form; this dependency allows plain functions as endpoints, which may query the database."""


class ConsoleRoute(GuardedRoute):
    """A guarded route for browsers."""

    async def authorize(self, request: Request, worker: Worker) -> Token | None:
        """Return the token of the session in the cookie; None for public pages.

        Raises:
            UnauthenticatedError: there is no session, or it has ended.
            ForbiddenError: the token of the session lacks the scope.
            UnavailableError: the database, which holds the sessions, cannot be asked.
        """
        if self.access.scope is None:
            return None
        cookie, client = request.cookies.get(COOKIE), client_address(request)
        token = await worker.console_sessions.token(cookie, client=client)
        check_scope(token, self.access.scope)
        worker.authenticator.note_use(token)
        return token

    def attempt(self, request: Request, error: LifelongError) -> str | None:
        """As of any route; but a browser without a token is led to the login, which is no attempt yet."""
        return None if isinstance(error, UnauthenticatedError) else super().attempt(request, error)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The guarded handler, whose errors become pages."""
        guarded = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                if request.method == "POST":
                    with self.audit(request):
                        check_origin(request)
                response = await guarded(request)
            except UnauthenticatedError:
                response = _to_login(request)
            except LifelongError as error:
                response = await run_in_threadpool(error_page, request, error_response(error))
            except RequestValidationError:  # the address holds something that cannot name anything
                missing = NotFoundError("there is no such page.")
                response = await run_in_threadpool(error_page, request, error_response(missing))
            except HTTPException as error:  # a form that the framework does not read to its end
                answer = await on_http_error(request, error)
                response = await run_in_threadpool(error_page, request, answer)
            except Exception:  # the last line of defence, as a page
                logger.exception("a page failed", extra={"details": {"path": request.url.path}})
                response = await run_in_threadpool(error_page, request, internal_error_response())
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return shown


def check_origin(request: Request) -> None:
    """Refuse a form that was not sent by a page of this console.

    Browsers name the sender in Sec-Fetch-Site on trustworthy connections, else in Origin.

    Raises:
        ForbiddenError: another site sent it, or its sender is unknown.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        is_ours = site in ("same-origin", "none")
    else:
        is_ours = origin is not None and origin.partition("://")[2] == request.headers.get("host")
    if not is_ours:
        raise ForbiddenError(
            "this form was not sent by a page of this console.",
            field="Origin",
            hint="Open the console itself and send the form there; a proxy in front of it must keep the header Host.",
        )


def is_plain(query: str) -> bool:
    """Whether a login may lead to a page with this query: only plain names and values."""
    return re.fullmatch(r"[a-z]+=[A-Za-z0-9._@-]+(&[a-z]+=[A-Za-z0-9._@-]+)*", query) is not None


def error_page(request: Request, answer: Response) -> Response:
    """Return the page for an error response of the API."""
    error = json.loads(bytes(answer.body))["error"]
    kept = {name: answer.headers[name] for name in ("retry-after", "connection") if name in answer.headers}
    return page(
        request,
        "error",
        status=answer.status_code,
        headers=kept,
        title=HTTPStatus(answer.status_code).phrase,
        status_code=answer.status_code,
        error=error,
    )


def _to_login(request: Request) -> Response:
    """Redirect to the login page, which redirects back to the requested page."""
    path, ended = request.url.path, "&ended=true" if COOKIE in request.cookies else ""
    if request.method == "GET":
        path += f"?{query}" if is_plain(query := request.url.query) else ""
        if _comes_from_elsewhere(request):
            ended += "&linked=true"
    else:
        path, ended = path.rpartition("/")[0], f"{ended}&unsaved=true"
    return see_other(f"/console/login?next={quote(path)}{ended}")


def _comes_from_elsewhere(request: Request) -> bool:
    """Whether the request follows a link of another site, by the headers of the browser.

    Without HTTPS, only the header Referer shows it.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("cross-site", "same-site")
    referer = request.headers.get("referer", "")
    return bool(referer) and referer.partition("://")[2].partition("/")[0] != request.headers.get("host")
