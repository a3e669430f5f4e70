"""No process of the product contacts a vendor or stores an id for one, although its libraries would."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests import tools
from tests.integration.installation import image, install
from tests.integration.processes import eventually, running_service
from tests.unit.service import onnx_graphs

SWITCHES = ("ORT_DISABLE_TELEMETRY", "BENTOML_DO_NOT_TRACK")
CONTINUOUS_INTEGRATION = (
    "CI",
    "TF_BUILD",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "CIRCLECI",
    "TRAVIS",
    "JENKINS_URL",
)
"""ONNX Runtime reports nothing where one of these is set; on a user's machine none is."""
_ADDRESS = re.compile(r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"')


def traced(log: Path, *command: str) -> tuple[str, ...]:
    """The command line that writes every attempt to reach another process by network to a file."""
    calls = "trace=connect,sendto,sendmsg,sendmmsg"
    return (tools.program(tools.STRACE), "-f", "--seccomp-bpf", "-qq", "-o", str(log), "-e", calls, *command)


def reached(log: Path) -> set[str]:
    """Addresses other than those of this machine itself that were tried."""
    text = log.read_text(errors="replace")
    found = {f"{address}:{port}" for port, address in _ADDRESS.findall(text)}
    return {one for one in found if not one.startswith(("127.", "::1:"))}


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a user with a home of their own who has switched nothing off."""
    folder.mkdir()
    left_out = (*SWITCHES, *CONTINUOUS_INTEGRATION)
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache")}


def kept_files(folder: Path) -> list[str]:
    """What a vendor keeps in a home."""
    return [str(path) for path in folder.rglob("*") if "Microsoft" in path.parts or "bentoml" in path.parts]


@contextmanager
def loading(imports: str, folder: Path) -> Iterator[tuple[Path, Path]]:
    """A process that imports these and loads a model; the file of its calls, and its home."""
    folder.mkdir()
    log, home = folder / "calls", folder / "home"
    code = (
        f"import {imports}, time; "
        f"session = onnxruntime.InferenceSession(bytes.fromhex({onnx_graphs.linear().hex()!r}));"
        " time.sleep(600)"
    )
    process = subprocess.Popen(
        traced(log, sys.executable, "-c", code), env=surroundings(home), start_new_session=True
    )
    try:
        yield log, home
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_a_report(folder: Path) -> None:
    """Until ONNX Runtime in a process without our packages has looked its host up, and kept an id.

    So whatever loaded a model before would have done so by now. This shows that the trace works, too.
    """
    with loading("onnxruntime", folder) as (log, home):
        eventually(lambda: log.exists() and reached(log), "ONNX Runtime to look up a host")
        assert kept_files(home)
        time.sleep(1)


def test_processes_that_load_models_and_a_service_that_predicts_are_silent(tmp_path: Path) -> None:
    modules = ("lifelong.cli", "lifelong_service.graphs.check_graph", "lifelong_service.graphs.classifier")
    installation = install(tmp_path)
    log, home = tmp_path / "calls", tmp_path / "home"
    left_out = (*SWITCHES, *CONTINUOUS_INTEGRATION)
    command = ("env", *(f"--unset={name}" for name in left_out), sys.executable, "-m", "lifelong_service")
    with ExitStack() as stack:
        silent = {
            module: stack.enter_context(loading(f"{module}, onnxruntime", tmp_path / module))
            for module in modules
        }
        service = stack.enter_context(
            running_service(
                tmp_path,
                installation.token,
                command=traced(log, *command),
                environment=surroundings(home),
                workers=1,
            )
        )
        service.wait_until_ready()
        assert service.send("POST", "/v1/predict", image()).status == 200
        wait_for_a_report(tmp_path / "control")
        silent["service"] = log, home
        assert log.stat().st_size > 0
        for name, (calls, folder) in silent.items():
            assert reached(calls) == set(), name
            assert kept_files(folder) == [], name
