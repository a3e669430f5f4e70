"""A client of an application in this process, whose event loop runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI

from tests.unit.service.documented import check_answer

Result = TypeVar("Result")


class InProcess:
    """Starts an application and sends it requests; what the application raises reaches the caller."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self.headers: dict[str, str] = {}
        self.checks_answers = True
        """Whether answers are compared with the OpenAPI document; not where a test stores made-up documents."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._lifespan = app.router.lifespan_context(app)
        self.run(self._lifespan.__aenter__())
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://test", timeout=60
        )
        # Tests say themselves which cookie a browser would send.
        self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the application's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        headers = {**self.headers, **arguments.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        answer = self.run(self._client.request(method, path, headers=headers, **arguments))
        if self.checks_answers:
            check_answer(self.app, answer)
        return answer

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return self.request("GET", path, **arguments)

    def post(self, path: str, **arguments: Any) -> httpx.Response:
        return self.request("POST", path, **arguments)

    def post_all(self, path: str, bodies: list[bytes], **arguments: Any) -> list[httpx.Response]:
        """Send all at once."""
        headers = {**self.headers, **arguments.pop("headers", {})}

        async def together() -> list[httpx.Response]:
            calls = [self._client.post(path, content=body, headers=headers, **arguments) for body in bodies]
            return await asyncio.gather(*calls)

        return self.run(together())

    def close(self) -> None:
        self.run(self._client.aclose())
        self.run(self._lifespan.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
