"""Start of the service: its command line, its environment, and one check before the workers.

The check takes as long as loading BentoML, so a child process makes it at the same time; BentoML's parent process waits
for its exit status before it starts a worker.
"""

import errno
import gc
import logging
import os
import runpy
import signal
import socket
import sys
import time
from pathlib import Path

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.addresses import host_and_port
from lifelong_core.runtime.files import ensure_temporary_folder, restrict_new_files
from lifelong_core.values.errors import ConfigurationError, LifelongError
from lifelong_service.process import signals

logger = logging.getLogger(__name__)

LISTENING_SECONDS = 0.8
"""Time after SIGTERM in which a worker reports not ready and still accepts requests."""
ANSWERING_SECONDS = 2.5
"""Time after that for requests in flight; later ones get 503."""
CLOSING_SECONDS = 0.6
"""Time after that for the end of all threads. The three together stay well below 5 s."""
GRACE_SECONDS = 3
"""Time after the end of listening at which the server answers 500 to requests in flight; longer than ours, because the
server checks its clock with a delay."""
ORPHANED_SECONDS = 5.0
"""Longest wait in seconds for a taken port at the start: the workers of a killed parent release it within 4 s, also
while the database hangs."""
SERVICE = "lifelong_service.service:Lifelong"
"""Import path of the BentoML service."""
REFUSED = 2
"""Exit status of a service whose configuration is not usable."""
CHECKER = "_LIFELONG_CHECKER"
"""Environment variable with the process id of the child that checks the database."""
PARENT = "_LIFELONG_PARENT"
"""Environment variable with the process id of BentoML's parent process, whose direct children the workers are."""


def serve(settings: Settings, service: str = SERVICE) -> None:
    """Check the installation and serve in this process, as `bentoml serve` does, until SIGTERM or SIGINT.

    Args:
        settings: settings of the service.
        service: where BentoML finds it.

    Raises:
        ConfigurationError: host and port, the data directory, or a temporary folder cannot be used.
        SystemExit: at the end; the status is that of BentoML's server, or REFUSED.
    """
    restrict_new_files()
    check_port(settings.host, settings.port, patience_seconds=ORPHANED_SECONDS)
    needed = environment(settings)
    os.environ.update(needed)
    ensure_temporary_folder(settings.data_directory)
    # The parent may ignore SIGCHLD, which is inherited; the exit status of the checker would be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with signals.hold_signals():
        signals.end_with_child(_checker)
        os.environ[CHECKER] = str(start_checker(settings))
    os.environ[PARENT] = str(os.getpid())
    sys.argv = arguments(settings, service)
    # Objects loaded here stay alive; collecting garbage would take a fifth of the time. The service enables the
    # collector when it is loaded.
    gc.disable()
    runpy.run_module("bentoml", run_name="__main__")


def open_standard_streams() -> None:
    """Replace closed standard streams by the null device.

    Otherwise the next opened file, perhaps one of the spool, gets the descriptor and the output of libraries.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))


def arguments(settings: Settings, service: str = SERVICE) -> list[str]:
    """Return the command line of BentoML's server."""
    return [
        "bentoml",
        "serve",
        service,
        "--host",
        settings.host,
        "--port",
        str(settings.port),
        "--timeout-graceful-shutdown",
        str(GRACE_SECONDS),
    ]


def environment(settings: Settings) -> dict[str, str]:
    """Return the environment variables of the server, in addition to the caller's.

    Raises:
        ConfigurationError: the data directory cannot be written.
    """
    # BentoML empties its metrics folder at its start: two services on one data directory must not share it.
    home = settings.data_directory.resolve() / "bentoml" / str(settings.port)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the folder {home} cannot be made: {error.strerror}.",
            field="LIFELONG_DATA_DIRECTORY",
            hint="Give the service a folder of its own that it can write to, on a disk with room.",
        ) from error
    variables = {
        "BENTOML_HOME": str(home),
        # Workers may start in another folder than the caller's.
        "LIFELONG_DATA_DIRECTORY": str(settings.data_directory.resolve()),
        # Without it, glibc frees and allocates large decode buffers for each image: three times slower. Each thread
        # keeps this much memory.
        "MALLOC_TOP_PAD_": str(16 * 1024 * 1024),
    }
    file = Path(os.environ.get("LIFELONG_CONFIG", "lifelong.toml"))
    if file.is_file():
        variables["LIFELONG_CONFIG"] = str(file.resolve())
    return variables


def parent_process() -> int:
    """Return the id of the process whose end also ends this worker.

    The environment holds the id, because the process may have died already; `os.getppid` is used only if BentoML was
    started directly.
    """
    return int(os.environ.get(PARENT) or os.getppid())


def check_port(host: str, port: int, *, patience_seconds: float = 0.0) -> None:
    """Check that a server can listen there.

    Args:
        host: an IP address of this machine.
        port: a free port.
        patience_seconds: longest wait while the port is taken.

    Raises:
        ConfigurationError: the host is not an IP address of this machine, or the port is taken.
    """
    until = time.monotonic() + patience_seconds
    while (error := _listening_error(host, port)) is not None:
        if error.errno != errno.EADDRINUSE or time.monotonic() >= until:
            raise ConfigurationError(
                f"the service cannot listen on {host_and_port(host, port)}: {error.strerror or error}.",
                field="LIFELONG_PORT",
                hint="Choose a free port, or stop what listens there.",
            ) from error
        time.sleep(0.05)


def _listening_error(host: str, port: int) -> OSError | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            return error
    return None


def start_checker(settings: Settings) -> int:
    """Check the database in a child process; return its id for `await_checker`."""
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    signals.end_at_once()
    status = 1
    try:
        from lifelong_service.process.checks import (
            check_database,  # loads the store while the parent loads BentoML
        )

        check_database(settings)
        status = 0
    except LifelongError as error:
        report(error)
        status = REFUSED
    except Exception:
        logger.exception("the database could not be checked")
    finally:
        sys.stderr.flush()
        os._exit(status)


def await_checker() -> int:
    """Return the exit status of the checker that the environment names: 0, or the status of the service.

    Without a checker (BentoML was started directly), the check runs in this process.
    """
    child = _checker()
    if child is not None:
        _, status = os.waitpid(child, 0)
        del os.environ[CHECKER]
        return os.waitstatus_to_exitcode(status)
    from lifelong_service.process.checks import check_database  # the start of the parent is faster without it

    try:
        settings = Settings.load()
        _check_absolute(settings)
        check_database(settings)
    except LifelongError as error:
        report(error)
        return REFUSED
    return 0


def _checker() -> int | None:
    child = os.environ.get(CHECKER)
    return None if child is None else int(child)


def _check_absolute(settings: Settings) -> None:
    """Check that paths are absolute: BentoML changes to the folder of its bento, where relative paths differ."""
    if not settings.data_directory.is_absolute():
        raise ConfigurationError(
            f"expected an absolute path, got {str(settings.data_directory)!r}.",
            field="LIFELONG_DATA_DIRECTORY",
            hint="Give the whole path, or start with `lifelong serve`, which does.",
        )


def report(error: LifelongError) -> None:
    """Print one line with the reason why the service does not start."""
    logger.error("%s", error)
