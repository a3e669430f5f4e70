"""Login and logout, the start page, the style sheet, and the page for what is not there."""

import re

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.errors import ForbiddenError, NotFoundError, UnauthenticatedError
from lifelong_core.store.records import Scope
from lifelong_service.console.pages import as_sentence, page, see_other, stylesheet
from lifelong_service.console.route import COOKIE, FORM, ConsoleRoute, Form, error_page
from lifelong_service.errors import error_response
from lifelong_service.guard import access, worker_of

START = "/console"

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)
anything_else = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console/login")
@access(None)
def login_form(
    request: Request,
    next: str = START,  # noqa: A002
    *,
    ended: bool = False,
    unsaved: bool = False,
) -> Response:
    """The form that asks for a token."""
    return page(request, "login", next=_inside(next), error=None, ended=ended, unsaved=unsaved)


@router.post("/console/login")
@access(None, media_types=FORM)
async def log_in(request: Request, form: Form) -> Response:
    """Keep the token in a cookie, if it is one and may look."""
    secret, goal = str(form.get("token", "")).strip(), _inside(str(form.get("next", START)))
    try:
        await worker_of(request).authenticator.authorize(f"Bearer {secret}", Scope.READ)
    except (UnauthenticatedError, ForbiddenError) as error:
        status = error_response(error).status_code
        return await run_in_threadpool(
            page,
            request,
            "login",
            status=status,
            next=goal,
            error=_refusal(error, secret),
            ended=False,
            unsaved=False,
        )
    response = see_other(goal)
    response.set_cookie(
        COOKIE, secret, path=START, httponly=True, samesite="strict", secure=_is_encrypted(request)
    )
    return response


@router.post("/console/logout")
@access(None, media_types=FORM)
async def log_out() -> Response:
    """Forget the token."""
    response = see_other("/console/login")
    response.delete_cookie(COOKIE, path=START, httponly=True, samesite="strict")
    return response


@router.get("/console/console.css")
@access(None)
async def style() -> Response:
    """The style sheet; its address changes with it."""
    content, _ = stylesheet()
    return Response(content, media_type="text/css", headers={"Cache-Control": "public, max-age=31536000"})


@anything_else.get("/console/")
@access(None)
def start_with_slash() -> Response:
    """To the start page, which has no slash at its end."""
    return see_other("/console")


@anything_else.api_route("/console/{rest:path}", methods=["GET", "POST"])
@access(None, media_types=FORM)
def nothing_there(request: Request, rest: str) -> Response:
    """The page for addresses that lead nowhere."""
    missing = NotFoundError(f"there is no page /console/{rest[:80]}.", mend="Go to the start of the console.")
    return error_page(request, error_response(missing))


def _inside(path: str) -> str:
    """A page of the console: a link must not lead from our login to somebody else's pages."""
    return path if re.fullmatch(r"/console(/[A-Za-z0-9-]+)*(\?item=[A-Za-z0-9._]+)?", path) else START


def _refusal(error: UnauthenticatedError | ForbiddenError, secret: str) -> str:
    if not secret:
        return "Paste a token first."
    if isinstance(error, ForbiddenError):
        return f"{as_sentence(error.message)} {error.mend}"
    return "This token is unknown, expired or revoked. Ask whoever gave it to you for another one."


def _is_encrypted(request: Request) -> bool:
    """Whether the browser came by HTTPS, to us or to a proxy before us."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
