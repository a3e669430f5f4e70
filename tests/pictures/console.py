"""All pages of the console as pictures: one page of each kind, found by its links."""

import html
import re
import sys
from collections import deque
from datetime import timedelta
from pathlib import Path

import httpx

from lifelong_service.console.route import COOKIE
from tests.behaviour.internals import console_routes
from tests.integration.browser import Browser
from tests.pictures.dashboards import SIZES
from tests.pictures.filling import fill
from tests.pictures.fleet import SWAPS, Fleet

_MOST = 400
"""Pages that are opened to find one of each kind."""
_NO_PAGES = re.compile(r"\.(css|js|json|csv)\b|/report\b|/reports/|format=")
_LIVE = "hx-get"
"""In pages of jobs that go on."""
STICKS_OUT = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def take(fleet: Fleet, browser: Browser, pages: Path) -> None:
    """Write `console-NAME.png` of each page, at both widths, light and dark, and name pages with a fault."""
    fill(fleet.store, fleet.model, SWAPS)
    session = fleet.store.console_sessions.begin(
        fleet.service.token or "", address="127.0.0.1", idle=timedelta(hours=1), lifetime=timedelta(hours=12)
    )
    address = f"http://127.0.0.1:{fleet.service.port}"
    browser.size(1280)
    browser.open(f"{address}/console/login")
    browser.screenshot(pages / "console-login.png")
    browser.call("Network.setCookie", name=COOKIE, value=session, url=address, path="/console")
    for name, path in sorted(_pages(address, session).items()):
        for ending, (width, scheme) in SIZES.items():
            browser.size(width, scheme=scheme)
            browser.open(address + path)
            browser.screenshot(pages / f"console-{name}{ending}.png")
            faults = [] if browser.evaluate(STICKS_OUT) <= 0 else ["it is wider than the screen"]
            faults += browser.barriers() if width < 500 else []  # noqa: PLR2004, RUF100
            if faults:
                sys.stdout.write(f"{name}{ending} ({path}): {'; '.join(faults)}\n")


def _pages(address: str, session: str) -> dict[str, str]:
    """The path of one page of each route, by a name of the route; that of the hospital with a swap if there is one."""
    routes = [path for method, path in console_routes() if method == "GET"]
    waiting, seen = deque(["/console"]), {"/console"}
    chosen: dict[str, str] = {}
    preferred: set[str] = set()
    with httpx.Client(base_url=address, headers={"Cookie": f"{COOKIE}={session}"}) as client:
        while waiting and len(seen) < _MOST:
            path = waiting.popleft()
            answer = client.get(path)
            if answer.status_code != 200:  # noqa: PLR2004, RUF100
                continue
            name = _route_name(path.partition("?")[0], routes)
            if name not in chosen or (name not in preferred and (SWAPS in path or _LIVE in answer.text)):
                chosen[name] = path
                preferred |= {name} if SWAPS in path or _LIVE in answer.text else set()
            for link in re.findall(r'href="(/console[^"#]*)', answer.text):
                target = html.unescape(link)
                if target not in seen and not _NO_PAGES.search(target):
                    seen.add(target)
                    (waiting.appendleft if SWAPS in target else waiting.append)(target)
    return chosen


def _route_name(path: str, routes: list[str]) -> str:
    """`/console/tokens/{name}` is `tokens-name`."""
    fitting = next(route for route in routes if re.fullmatch(re.sub(r"\{[^/}]*\}", "[^/]+", route), path))
    return re.sub(r"\W+", "-", fitting.removeprefix("/console")).strip("-") or "start"
