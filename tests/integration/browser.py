"""A real browser: headless Chromium, driven through its DevTools protocol over two pipes."""

import base64
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests import tools

PATIENCE_SECONDS = 30.0
KEYS = {
    "Enter": ("\r", 13),
    "Tab": ("", 9),
    "Space": (" ", 32),
    "ArrowDown": ("", 40),
    "ArrowUp": ("", 38),
    "Delete": ("", 46),
}
"""What a key types, and its number."""
AXE = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.flatMap(rule => rule.nodes.map(
    node => [rule.impact, rule.id + ': ' + node.html.slice(0, 200) + ' ' + (node.failureSummary ?? '')])))"""
"""Findings of axe-core about the page: how grave each is, and what it is."""
NAMES = {"Space": " "}
"""Keys whose name is not that of the place on the keyboard."""

ARRIVED = """window.isLeft !== true && document.readyState === 'complete'
    && (document.activeElement !== document.body || document.querySelector('[autofocus]') === null)"""
"""Whether the next page is there, with the focus where it wants it."""


class Browser:
    """One tab. Every call waits for its answer; what went wrong in the page is an AssertionError.

    Args:
        process: Chromium, which reads commands from one pipe and writes answers to another.
        commands: file descriptor to write to.
        answers: file descriptor to read from.
    """

    def __init__(self, process: subprocess.Popen[bytes], commands: int, answers: int) -> None:
        self._process = process
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Send one command and wait for its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._count:
                assert "error" not in found, f"{method}: {found['error']}"
                return found["result"]
            if "method" in found and self._session is not None:
                self.events.append(found)

    def open(self, url: str) -> None:
        """Go to an address and wait until its page is there."""
        with self.navigation():
            self.call("Page.navigate", url=url)

    @contextmanager
    def navigation(self) -> Iterator[None]:
        """What is done within leads to another page; afterwards it is there."""
        self.evaluate("window.isLeft = true")
        yield
        self.wait_until(ARRIVED)

    def wait_until(self, expression: str) -> None:
        """Wait until something holds in the page; a page that the browser kept as it was never arrives anew."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"no other page than {self.evaluate('location.href')}"
            time.sleep(0.01)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; None while one page follows another."""
        try:
            found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        except AssertionError:
            return None
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        text, number = KEYS[key]
        values = {
            "key": NAMES.get(key, key),
            "code": key,
            "windowsVirtualKeyCode": number,
            "modifiers": 8 if shift else 0,
        }
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **values)
        self.call("Input.dispatchKeyEvent", type="keyUp", **values)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def text(self, selector: str = "main") -> str:
        """What a reader sees of the first element that fits."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def size(self, width: int, height: int = 800, *, scheme: str = "light", media: str = "") -> None:
        """Be a window of another size, with another taste, or a printer."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def barriers(self, *impacts: str) -> list[str]:
        """What hinders people in this page, by axe-core; those of some impacts, default: serious and critical ones."""
        self.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text() + "; true")
        found = self.call("Runtime.evaluate", expression=AXE, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return [
            text
            for impact, text in found["result"]["value"]
            if impact in (impacts or ("serious", "critical"))
        ]

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """What the console of the page says went wrong."""
        found: list[str] = []
        for event in self.events:
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
        return found

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._answers, 2**16)
            assert chunk, f"Chromium has ended with {self._process.wait()}"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


@contextmanager
def running_browser(*arguments: str) -> Iterator[Browser]:
    """Headless Chromium with a profile of its own; where there is none, the test is skipped, or fails under CI.

    Args:
        arguments: of its command line, beside those that every test needs.
    """
    program = tools.program(tools.CHROMIUM)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command_read, command_write = os.pipe()
        answer_read, answer_write = os.pipe()
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            *arguments,
        ]
        # It reads from file descriptor 3 and writes to 4.
        script = f'exec 3<&{command_read} 4>&{answer_write}; exec "$0" "$@"'
        process = subprocess.Popen(
            ["bash", "-c", script, program, *options],
            pass_fds=(command_read, answer_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(command_read)
        os.close(answer_write)
        try:
            yield Browser(process, command_write, answer_read)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(command_write)
            os.close(answer_read)
