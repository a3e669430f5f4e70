"""Rendering of pages: templates with escaping, and the style sheet."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from lifelong_core.charts.style import STYLE
from lifelong_core.entities.access import Scope, Token
from lifelong_service.console.changes import change_named
from lifelong_service.console.navigation import links_for
from lifelong_service.guard.access import worker_of
from lifelong_service.guard.errors import sentence
from lifelong_service.transport.responses import FixedDocument
from lifelong_service.transport.root_path import below

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_HERE = Path(__file__).parent
DONE_COOKIE = "lifelong_done"
"""Holds the name of the operation that the previous form carried out, until the next page shows it."""
_DONE_SECONDS = 60


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """Return a page from `templates/{template}.html.jinja`.

    Args:
        request: the request; the page shows the name of its token.
        template: name of the template.
        status: status of the answer.
        headers: headers of the answer.
        context: values for the template.
    """
    token: Token | None = getattr(request.state, "token", None)
    done = None if token is None else request.cookies.get(DONE_COOKIE)
    common = {
        "navigation": [] if token is None else links_for(token),
        "here": request.url.path,
        "done": None if done is None else change_named(done),
        "token": token,
        "may_write": token is not None and token.allows(Scope.OPERATE),
        "may_attach": token is not None and token.allows(Scope.ADMIN),
        "script": f"/console/htmx.js?version={script().version}",
        "stylesheet": f"/console/console.css?version={stylesheet().version}",
    }
    text = _templates().get_template(f"{template}.html.jinja").render(common | context)
    text = below(worker_of(request).settings.root_path, text)
    response = HTMLResponse(text, status_code=status, headers=headers)
    if done is not None:
        response.delete_cookie(DONE_COOKIE, path="/console", httponly=True, samesite="strict")
    return response


def note_done(response: Response, operation: str) -> None:
    """Let the next page say that the operation of this name was carried out, and how to undo it."""
    response.set_cookie(
        DONE_COOKIE, operation, max_age=_DONE_SECONDS, path="/console", httponly=True, samesite="strict"
    )


def as_sentence(text: str) -> str:
    """Return the message of an error as a sentence.

    Examples:
        >>> as_sentence("nothing is chosen")
        'Nothing is chosen.'
    """
    return sentence(f"{text[:1].upper()}{text[1:]}")


def see_other(path: str) -> Response:
    """Redirect after a form, so that reloading the page does not send the form again."""
    return RedirectResponse(path, status_code=303)


@cache
def script() -> FixedDocument:
    """Return htmx, unchanged: pages of running jobs load their own address again, and no other page has a script."""
    content = (_HERE / "htmx-2.0.10.min.js").read_bytes()
    return FixedDocument(content, "text/javascript", {"Cache-Control": "public, max-age=31536000"})


@cache
def stylesheet() -> FixedDocument:
    """Return the style sheet of pages and charts."""
    content = (_HERE / "console.css").read_bytes() + STYLE.encode()
    return FixedDocument(content, "text/css", {"Cache-Control": "public, max-age=31536000"})


def _moment(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"


def _second(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _breakable(name: str) -> "Markup":
    """Return a name that a narrow column may break after its separators."""
    from markupsafe import Markup, escape  # comes with the templates

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[._-])", name))


def _code(text: str) -> "Markup":
    """Return a text with what stands between backticks, such as commands, as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _class_list(names: Sequence[str]) -> str:
    from lifelong_core.design.interview.class_names import list_class_names  # loads the design loop

    return list_class_names(names)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # 50 ms that predictions save

    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined
    )
    made.filters["sentence"] = as_sentence
    made.filters["breakable"] = _breakable
    made.filters["code"] = _code
    made.filters["class_list"] = _class_list
    made.filters["moment"] = _moment
    made.filters["second"] = _second
    return made
