"""The console: every page that links lead to and the forms on them, with a session."""

import html
import re
from collections import deque
from html.parser import HTMLParser

from tests.behaviour.normalise import UUID
from tests.behaviour.recording import Api, Recording, name_of, text_of

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
MOST_PAGES = 300
FORMS = (
    ("/console/tasks/skin", "shadow", {}),
    ("/console/tasks/skin", "canary", {"percent": "20"}),
    ("/console/tasks/skin", "end", {}),
    ("/console/tasks/skin", "/promote", {"reason": "a test"}),
    ("/console/tasks/skin", "/rollback", {}),
    ("/console/heads/linear/site-a", "/pin", {"reason": "a test"}),
    ("/console/heads/linear/site-a", "/unpin", {}),
    ("/console/heads/linear/site-a", "/rollback", {}),
    ("/console/labels", "labels", {"size": "5"}),
    ("/console/sessions", "end", {}),
)
"""Page, end of the form's action, and the fields that are not left as they are shown."""


class Console:
    """A browser that is logged in with the token of an administrator."""

    def __init__(self, recording: Recording, api: Api) -> None:
        self._recording = recording
        self._client = api.client
        self._cookies: dict[str, str] = {}
        self._token = api.token
        self.seen: dict[str, set[str]] = {"GET": set(), "POST": set()}
        self.log_in()

    def log_in(self) -> None:
        """Begin a session."""
        self.post("/console/login", {"token": self._token})

    def post(self, path: str, form: dict[str, str]) -> str:
        """Send a form, confirm it if the answer asks for that, record the answers, and return where they lead to."""
        text, location = self._send("POST", path, data=form)
        asked = [one for one in Forms.of(text) if "confirmed" in one.fields]
        return self._send("POST", asked[0].action, data=asked[0].fields)[1] if asked else location

    def get(self, path: str) -> str:
        """Open a page and record it."""
        return "".join(self._send("GET", path))

    def crawl(self) -> None:
        """Open the start page and, once each, all pages that links and redirections lead to."""
        waiting, opened = deque(["/console", "/console/", "/console/console.css"]), set[str]()
        while waiting and len(opened) < MOST_PAGES:
            path = waiting.popleft().partition("#")[0]
            if path in opened or not path.startswith("/console"):
                continue
            opened.add(path)
            text = self.get(path)
            waiting.extend(html.unescape(link) for link in re.findall(r'href="([^"]*)"', text))

    def submit(self, page: str, end: str, changed: dict[str, str]) -> str:
        """Open a page and send its first form with that end of the action; returns where it leads to, or nothing."""
        forms = [form for form in Forms.of(self.get(page)) if form.action.endswith(end)]
        return self.post(forms[0].action, forms[0].fields | changed) if forms else ""

    def fill_in(self, api: Api) -> None:
        """Send the forms of tasks, labels, jobs, proposals and sessions, and answer a whole interview."""
        page, wanted = (
            self.post("/console/interviews", {"task": "skin"}),
            ("answers", "choices", "resolve", "attach"),
        )
        while page:
            forms = [form for form in Forms.of(self.get(page)) if form.action.endswith(wanted)]
            if not forms:
                break
            known = {name: value or "1" for name, value in forms[0].fields.items()}
            text = {"value": "patient"} if known.get("field") == "grouping_variable" else {}
            page = self.post(forms[0].action, known | text)
        self.post("/console/interviews", {"classes": "a, b"})
        self.submit("/console/interviews", "/discard", {})
        decisions = (("/accept", {}), ("/dismiss", {"reason": "a broken scanner"}))
        for proposal, decision in zip(api.peek("proposals?state=open")["proposals"], decisions, strict=False):
            self.submit(f"/console/proposals/{proposal['id']}", *decision)
        for job in api.peek("jobs?state=queued")["jobs"][:1]:
            self.submit(f"/console/jobs/{job['id']}", "/cancel", {})
        for page, end, changed in FORMS:
            self.submit(page, end, changed)
        self.log_in()

    def refuse(self) -> None:
        """Log in with a wrong token, and open pages without a session."""
        self.post("/console/logout", {})
        self.post("/console/login", {"token": "ll_wrong"})
        self._cookies = {}
        self.get("/console/login?next=/console/tasks")
        self.get("/console/tasks/skin?x=1")
        self.post("/console/labels", {})

    def _send(self, method: str, path: str, **form: dict[str, str]) -> tuple[str, str]:
        headers = SAME_ORIGIN | {"Cookie": "; ".join("=".join(one) for one in self._cookies.items())}
        answer = self._client.request(method, path, headers=headers, follow_redirects=False, **form)
        self._client.cookies.clear()
        pairs = (cookie.partition(";")[0].split("=", 1) for cookie in answer.headers.get_list("set-cookie"))
        self._cookies |= {name: value.strip('"') for name, value in pairs}
        plain = path.partition("?")[0]
        self.seen[method].add(plain)
        item = name_of(f"{method} {re.sub(UUID, '{id}', plain)}")
        self._recording.add(f"console/{item}", f"{method} {path} {form.get('data', '')}", text_of(answer))
        location = answer.headers.get("location", "")
        return answer.text, f' href="{location}"' if method == "GET" and location else location


class Forms(HTMLParser):
    """The forms of a page as a browser would send them, radio buttons without a choice with their first one."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []

    @classmethod
    def of(cls, page: str) -> "list[Form]":
        """The forms of a page that are sent by POST."""
        parser = cls()
        parser.feed(page)
        return parser.forms

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a form, or a field of the newest one."""
        found = dict(attrs)
        if tag == "form" and (found.get("method") or "").lower() == "post":
            self.forms.append(Form(found.get("action") or ""))
        elif tag in ("input", "button", "textarea") and self.forms and found.get("name"):
            self.forms[-1].fields.setdefault(found["name"] or "", found.get("value") or "")
        elif tag == "select" and self.forms:
            self.forms[-1].select = found.get("name")
        elif tag == "option" and self.forms and self.forms[-1].select and "value" in found:
            self.forms[-1].fields.setdefault(self.forms[-1].select, found["value"] or "")


class Form:
    """Where a form is sent to, and its fields."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.fields: dict[str, str] = {}
        self.select: str | None = None
