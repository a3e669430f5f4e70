"""The runbooks of the alerts as pages; they come from `docs/runbooks`, one file for each alert."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.values.errors import NotFoundError
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access

if TYPE_CHECKING:
    from markupsafe import Markup

LIST = "/console/runbooks"
_HERE = Path(__file__)
_FOLDERS = (_HERE.parents[1] / "runbooks", _HERE.parents[3] / "docs" / "runbooks")
"""A wheel holds them inside of the package; a checkout and a bento beside it."""
_PAGE_NAME = re.compile(r"<code>(/console[a-z/]*)</code>")

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(Scope.READ)
def list_runbooks(request: Request) -> Response:
    """List the alerts that have a runbook."""
    return page(request, "runbooks", names=sorted(_runbooks()))


@router.get(LIST + "/{name}")
@access(Scope.READ)
def show_runbook(request: Request, name: str) -> Response:
    """Show what an alert means, what to look at and what to do.

    Raises:
        NotFoundError: there is no such alert.
    """
    file = _runbooks().get(name)
    if file is None:
        raise NotFoundError(f"there is no runbook {name!r}.", field="name", hint=f"{LIST} lists all.")
    return page(request, "runbook", title=name, text=_as_html(file.read_text(encoding="utf-8")))


@cache
def _runbooks() -> dict[str, Path]:
    return {file.stem: file for folder in _FOLDERS for file in folder.glob("*.md")}


def _as_html(text: str) -> "Markup":
    """Return the Markdown of a runbook as HTML; pages of the console become links, those of the documentation text."""
    from markdown_it import MarkdownIt  # 30 ms that a start of the service saves
    from markupsafe import Markup

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    for token in tokens:
        for part in token.children or ():
            if part.type == "link_open":
                target = str(part.attrs["href"])
                part.attrs["href"] = f"{LIST}/{target.removesuffix('.md')}"
                if target.startswith("../"):
                    part.attrs = {}
    html = _PAGE_NAME.sub(r'<a href="\1">\1</a>', reader.renderer.render(tokens, reader.options, {}))
    return Markup(html)  # noqa: S704 - our own files, and html is off
