"""All pages of the console as pictures: one page of each kind, found by its links."""

import html
import re
import sys
from collections import Counter, deque
from datetime import timedelta
from pathlib import Path

import httpx

from lifelong_service.console.route import COOKIE
from tests.behaviour.internals import console_routes
from tests.integration.browser import Browser
from tests.pictures.dashboards import SIZES
from tests.pictures.filling import fill
from tests.pictures.fleet import SWAPS, Fleet

_OF_EACH = 12
"""Pages of a route that are opened to find the one with most to see."""
_PATIENCE = 60.0
"""Seconds."""
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
            faults += browser.barriers()
            if faults:
                sys.stdout.write(f"{name}{ending} ({path}): {'; '.join(faults)}\n")


def _pages(address: str, session: str) -> dict[str, str]:
    """The path of one page of each route, by a name of the route: of the hospital with a swap, or with news, if any."""
    routes = [path for method, path in console_routes() if method == "GET"]
    waiting, seen = deque(["/console"]), {"/console"}
    chosen: dict[str, str] = {}
    preferred: set[str] = set()
    opened = Counter[str]()
    with httpx.Client(
        base_url=address, headers={"Cookie": f"{COOKIE}={session}"}, timeout=_PATIENCE
    ) as client:
        while waiting:
            path = waiting.popleft()
            name = _route_name(path.partition("?")[0], routes)
            if opened[name] >= _OF_EACH or name in preferred:
                continue
            opened[name] += 1
            answer = client.get(path)
            if answer.status_code != httpx.codes.OK:
                sys.stdout.write(f"{path}: {answer.status_code}, although a page leads there\n")
                continue
            is_preferred = SWAPS in path or _LIVE in answer.text
            if name not in chosen or is_preferred:
                chosen[name] = path
                preferred |= {name} if is_preferred else set()
            for link in re.findall(r'href="(/console[^"#]*)', answer.text):
                target = html.unescape(link)
                if target not in seen and not _NO_PAGES.search(target):
                    seen.add(target)
                    (waiting.appendleft if SWAPS in target else waiting.append)(target)
    return chosen


def _route_name(path: str, routes: list[str]) -> str:
    """`/console/tokens/{name}` is `tokens-name`."""
    patterns = {route: re.sub(r"\{[^/}]*\}", "[^/]+", route.replace(":path", "")) for route in routes}
    fitting = next((route for route, pattern in patterns.items() if re.fullmatch(pattern, path)), "nowhere")
    return re.sub(r"\W+", "-", fitting.removeprefix("/console")).strip("-") or "start"
