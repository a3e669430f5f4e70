"""Load by wrk: a client in C that takes little of the processor; its Lua script prints one line of JSON."""

import json
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lifelong_core.values.errors import LifelongError

PROGRAM = "wrk"
TIMEOUT_SECONDS = 10
"""wrk counts a request without an answer after this time as a fault."""
_SCRIPT = """\
local requests, number = {}, 0
init = function(arguments)
  for i = 1, COUNT do
    local file = io.open(FOLDER .. "/" .. i, "rb")
    requests[i] = wrk.format("POST", PATH, HEADERS, file:read("*a"))
    file:close()
  end
end
request = function()
  number = number % COUNT + 1
  return requests[number]
end
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\\nFIGURES {"requests":%d,"us":%d,"p50":%d,"p99":%d,"mean":%.0f,"maximum":%d,"refused":%d,"faults":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.mean, latency.max,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """What one time of load came to.

    Attributes:
        seconds: duration.
        answered: answers with a status below 400.
        refused: other answers.
        faults: connections that failed, and requests without an answer.
        p50_ms: median latency of all answers, in milliseconds.
        p99_ms: its 0.99 quantile.
        mean_ms: its mean.
        maximum_ms: the largest one.
    """

    seconds: float
    answered: int
    refused: int
    faults: int
    p50_ms: float
    p99_ms: float
    mean_ms: float
    maximum_ms: float

    @property
    def per_second(self) -> float:
        """Answered requests per second."""
        return self.answered / self.seconds

    def closed_loop_per_second(self, connections: int) -> float:
        """The same from the mean latency, as each connection always waits for one answer.

        wrk does not count the requests that are under way at its end: a tenth of all where a model takes long. But its
        own time between two requests, which matters where answers are fast, is not in the latency; so refused requests,
        which are fast, leave only the count.
        """
        return self.per_second if self.refused else connections / (self.mean_ms / 1e3)


def check_wrk() -> None:
    """Check that the program is installed.

    Raises:
        LifelongError: it is not.
    """
    if shutil.which(PROGRAM) is None:
        raise LifelongError("wrk is missing: it makes the load. Install it (Debian: apt-get install wrk).")


class Requests:
    """POST requests that are sent in turn, to one path of a server on this machine.

    Args:
        script: file of the Lua script.
        port: of the server.
    """

    def __init__(self, script: Path, port: int) -> None:
        self._script = script
        self._port = port

    def command(self, connections: int, seconds: float) -> list[str]:
        """The command line of wrk; each connection sends its next request when the last one is answered.

        Args:
            connections: number of connections.
            seconds: duration; rounded up to whole seconds.
        """
        duration = math.ceil(seconds)
        options = ["-t1", f"-c{connections}", f"-d{duration}s", f"--timeout={TIMEOUT_SECONDS}s"]
        return [PROGRAM, *options, "-s", str(self._script), f"http://127.0.0.1:{self._port}"]

    def send(self, connections: int, seconds: float) -> Load:
        """Send requests; as `command`.

        Raises:
            LifelongError: wrk failed, or got no answer.
        """
        done = subprocess.run(self.command(connections, seconds), capture_output=True, text=True, check=False)
        return read_load(done.stdout, done.stderr)


@contextmanager
def prepared(port: int, path: str, headers: Mapping[str, str], bodies: Sequence[bytes]) -> Iterator[Requests]:
    """Requests with these bodies, whose files are removed at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, body in enumerate(bodies, start=1):
            (folder / str(number)).write_bytes(body)
        script = folder / "requests.lua"
        script.write_text(_script(folder, path, headers, len(bodies)))
        yield Requests(script, port)


def _script(folder: Path, path: str, headers: Mapping[str, str], count: int) -> str:
    # A JSON string of plain ASCII is a Lua string, too.
    table = ", ".join(f"[{json.dumps(name)}] = {json.dumps(value)}" for name, value in headers.items())
    values = {"COUNT": str(count), "FOLDER": json.dumps(str(folder)), "PATH": json.dumps(path)}
    assignments = [
        f"local {name} = {value}" for name, value in (values | {"HEADERS": f"{{{table}}}"}).items()
    ]
    return "\n".join([*assignments, _SCRIPT])


def read_load(output: str, errors: str = "") -> Load:
    """Return the figures in the output of wrk.

    Raises:
        LifelongError: there are none, or nothing was answered.
    """
    found = re.search(r"^FIGURES (\{.*\})$", output, re.MULTILINE)
    if found is None:
        raise LifelongError(f"wrk printed no figures: {(output + errors).strip()[-500:]}")
    figures = json.loads(found[1])
    load = Load(
        seconds=figures["us"] / 1e6,
        answered=figures["requests"] - figures["refused"],
        refused=figures["refused"],
        faults=figures["faults"],
        p50_ms=figures["p50"] / 1e3,
        p99_ms=figures["p99"] / 1e3,
        mean_ms=figures["mean"] / 1e3,
        maximum_ms=figures["maximum"] / 1e3,
    )
    if not load.answered:
        raise LifelongError(f"no request was answered: {load}")
    return load
