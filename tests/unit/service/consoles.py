"""A browser without display, for the pages of the console."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx

from lifelong_core.design.interview.interview import start_interview
from lifelong_service.console.route import COOKIE
from tests.unit.service.conftest import CLASS_NAMES, COSTS, Service

OURS = {"Sec-Fetch-Site": "same-origin"}
"""What a browser says of a form that our own page sent."""


@dataclass
class Console:
    """A browser without eyes: it is logged in with the token of `scope`, and sends forms as ours do."""

    service: Service
    scope: str = "operate"
    sessions: dict[str, str] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        if self.scope not in self.sessions:
            self.sessions[self.scope] = self.service.store.console_sessions.begin(
                self.service.secrets[self.scope],
                address="127.0.0.1",
                idle=timedelta(hours=1),
                lifetime=timedelta(hours=12),
            )
        return {"Cookie": f"{COOKIE}={self.sessions[self.scope]}"}

    def get(self, path: str) -> httpx.Response:
        return self.service.client.get(path, headers=self.headers())

    def post(self, path: str, form: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        """Send a form that is confirmed."""
        return self.ask(path, {"confirmed": "yes"} | (form or {}), **headers)

    def ask(self, path: str, form: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        """Send a form as a page has it, before its confirmation."""
        return self.service.client.post(path, data=form or {}, headers=self.headers() | OURS | headers)

    def begin(self, **answers: Any) -> str:
        """The page of a new interview for the task of the tests."""
        names = None if "number_of_classes" in answers else CLASS_NAMES
        interview = start_interview(class_names=names, answers=answers)
        record = self.service.store.interviews.start(interview, task=None, actor="somebody")
        return f"/console/interviews/{record.id}"

    def record(self, path: str) -> Any:
        return self.service.store.interviews.get(UUID(path.split("/")[3]))

    def send(self, path: str, what: str, **form: Any) -> httpx.Response:
        """A form of an interview's page, with the revision that the page shows."""
        return self.post(f"{path}/{what}", {"revision": self.record(path).revision, **form})


def with_task(service: Service) -> Console:
    """The console of a service that knows one task."""
    service.store.tasks.add("skin", CLASS_NAMES, COSTS, actor="test")
    return Console(service)
