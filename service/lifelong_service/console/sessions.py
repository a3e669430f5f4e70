"""Login and logout, sessions, the style sheet, and the page for unknown addresses."""

import logging
import re
from urllib.parse import quote

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.operations.administration.tokens import EndSessions, ListSessions
from lifelong_core.store.access.audit_log import REFUSED_LOGIN
from lifelong_core.values.errors import (
    ForbiddenError,
    LifelongError,
    NotFoundError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
)
from lifelong_service.console.pages import as_sentence, page, script, see_other, stylesheet
from lifelong_service.console.route import COOKIE, FORM, ConsoleRoute, Form, error_page, is_plain
from lifelong_service.guard.access import (
    access,
    actor_of,
    carry_out,
    client_address,
    note_refusal,
    worker_of,
)
from lifelong_service.guard.errors import error_response

START = "/console"
LOGIN = "/console/login"

logger = logging.getLogger(__name__)

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)
anything_else = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console/login")
@access(None)
async def login_form(
    request: Request,
    next: str = START,  # noqa: A002
    *,
    ended: bool = False,
    unsaved: bool = False,
    linked: bool = False,
) -> Response:
    """Show the login form; a logged-in browser is redirected.

    After a link of another site (`linked`), browsers do not send a SameSite=Strict cookie. So the answer is a page that
    loads this address again, then with the cookie.
    """
    goal = _inside(next)
    if COOKIE in request.cookies:
        try:
            await worker_of(request).console_sessions.token(
                request.cookies[COOKIE], client=client_address(request)
            )
        except UnauthenticatedError:
            pass
        else:
            return see_other(goal)
    elif linked:
        return await run_in_threadpool(page, request, "opening", again=f"{LOGIN}?next={quote(goal)}")
    return await run_in_threadpool(_login_page, request, goal, ended=ended, unsaved=unsaved)


@router.post("/console/login")
@access(None, media_types=FORM)
async def log_in(request: Request, form: Form) -> Response:
    """Start a session if the token is valid and has the scope `read`; a cookie holds its identifier."""
    secret, goal = str(form.get("token", "")).strip(), _inside(str(form.get("next", START)))
    worker, address = worker_of(request), client_address(request)
    try:
        worker.login_limiter.begin(address)
        token = await worker.authenticator.authorize(f"Bearer {secret}", Scope.READ)
        identifier = await run_in_threadpool(worker.console_sessions.begin, secret, address=address)
    except (UnauthenticatedError, ForbiddenError, TooManyRequestsError) as error:
        note_refusal(request, error, action=REFUSED_LOGIN)
        return await run_in_threadpool(_login_page, request, goal, refused=error, secret=secret)
    except UnavailableError:
        worker.login_limiter.forgive(address)
        raise
    worker.login_limiter.succeed(address)
    logger.info("logged in to the console", extra={"details": {"token": token.name, "address": address}})
    if COOKIE in request.cookies:  # a new login ends the previous session
        await run_in_threadpool(worker.console_sessions.end, request.cookies[COOKIE])
    response = see_other(goal)
    response.set_cookie(
        COOKIE, identifier, path=START, httponly=True, samesite="strict", secure=_is_encrypted(request)
    )
    return response


@router.post("/console/logout")
@access(None, media_types=FORM)
def log_out(request: Request) -> Response:
    """End the session of this browser."""
    response = see_other(LOGIN)
    try:
        if COOKIE in request.cookies:
            worker_of(request).console_sessions.end(request.cookies[COOKIE])
    except UnavailableError as error:
        minutes = worker_of(request).settings.console_idle_seconds / 60
        unended = UnavailableError(
            "this browser is logged out, but the database does not answer, so the session could not be ended there.",
            hint=f"It ends by itself after {minutes:.0f} minutes without a request.",
            retry_after_seconds=error.retry_after_seconds,
        )
        response = error_page(request, error_response(unended))
    response.delete_cookie(COOKIE, path=START, httponly=True, samesite="strict")
    return response


@router.get("/console/sessions")
@access(Scope.READ)
def show_sessions(request: Request) -> Response:
    """Show the sessions of the token of this session."""
    listed = carry_out(request, ListSessions(name=actor_of(request)))
    return page(request, "sessions", sessions=listed.sessions)


@router.post("/console/sessions/end")
@access(Scope.READ, media_types=FORM)
def log_out_everywhere(request: Request) -> Response:
    """End all sessions of the token of this session, including this one."""
    carry_out(request, EndSessions(name=actor_of(request)))
    response = see_other(LOGIN)
    response.delete_cookie(COOKIE, path=START, httponly=True, samesite="strict")
    return response


@router.get("/console/console.css")
@access(None)
async def style(request: Request) -> Response:
    """Return the style sheet; its address changes with its content."""
    return stylesheet().answer(request)


@router.get("/console/htmx.js")
@access(None)
async def htmx(request: Request) -> Response:
    """Return the script of the pages of running jobs; its address changes with its content."""
    return script().answer(request)


@anything_else.get("/console/")
@access(None)
def start_with_slash() -> Response:
    """Redirect to the start page, whose address has no trailing slash."""
    return see_other("/console")


@anything_else.api_route("/console/{rest:path}", methods=["GET", "POST"])
@access(None, media_types=FORM)
def not_found_page(request: Request, rest: str) -> Response:
    """Show the page for unknown addresses."""
    missing = NotFoundError(f"there is no page /console/{rest[:80]}.", hint="Go to the start of the console.")
    return error_page(request, error_response(missing))


def _login_page(  # noqa: PLR0913, RUF100
    request: Request,
    goal: str,
    *,
    ended: bool = False,
    unsaved: bool = False,
    refused: LifelongError | None = None,
    secret: str = "",
) -> Response:
    answer = None if refused is None else error_response(refused)
    retry = {} if answer is None else {k: v for k, v in answer.headers.items() if k == "retry-after"}
    return page(
        request,
        "login",
        status=200 if answer is None else answer.status_code,
        headers=retry,
        next=goal,
        error=None if refused is None else _refusal(refused, secret),
        ended=ended,
        unsaved=unsaved,
    )


def _inside(path: str) -> str:
    """Return the path if it is a page of the console, else the start page: logins must not redirect to other sites."""
    address, _, query = path.partition("?")
    is_page = re.fullmatch(r"/console(/[A-Za-z0-9][A-Za-z0-9._@-]*)*", address) and (
        not query or is_plain(query)
    )
    return path if is_page else START


def _refusal(error: LifelongError, secret: str) -> str:
    if not secret and isinstance(error, UnauthenticatedError):
        return "Paste a token first."
    if isinstance(error, UnauthenticatedError):
        return "This token is unknown, expired or revoked. Ask the operator of this service for a new one."
    return f"{as_sentence(error.message)} {error.hint}"


def _is_encrypted(request: Request) -> bool:
    """Whether the browser used HTTPS, to this service or to a proxy in front of it."""
    return "https" in (request.scope.get("scheme"), request.headers.get("x-forwarded-proto"))
