"""How the service is started: one command line and environment, whoever starts it, and one check before the workers.

The check takes as long as loading BentoML does, so a child process makes it meanwhile; BentoML's parent process waits
for its verdict before it starts a worker.
"""

import os
import socket
import sys
import traceback
from pathlib import Path

from lifelong_core.errors import ConfigurationError, LifelongError
from lifelong_core.settings import Settings

GRACE_SECONDS = 5
"""What is in flight at SIGTERM has this long to be answered."""
REFUSED = 2
"""Exit status of a service that cannot be started as it is configured."""
CHECKER = "_LIFELONG_CHECKER"
"""Environment variable with the process id of the child that checks the database."""
PARENT = "_LIFELONG_PARENT"
"""Environment variable with the process id of BentoML's parent process, whose direct children the workers are."""


def command(settings: Settings) -> list[str]:
    """The command line that serves in the foreground until SIGTERM or SIGINT."""
    return [
        sys.executable,
        "-m",
        "bentoml",
        "serve",
        "lifelong_service.service:Lifelong",
        "--host",
        settings.host,
        "--port",
        str(settings.port),
        "--timeout-graceful-shutdown",
        str(GRACE_SECONDS),
    ]


def environment(settings: Settings) -> dict[str, str]:
    """What the command needs in its environment beside the caller's own."""
    # BentoML wipes its metrics folder when it starts: two services on one data directory must not share it.
    home = settings.data_directory.resolve() / "bentoml" / str(settings.port)
    home.mkdir(parents=True, exist_ok=True)
    found = {
        "BENTOML_HOME": str(home),
        "BENTOML_DO_NOT_TRACK": "True",
        # Workers need not start in the caller's folder.
        "LIFELONG_DATA_DIRECTORY": str(settings.data_directory.resolve()),
        # glibc gives large decode buffers back and fetches them anew at each image otherwise: three times slower.
        "MALLOC_TOP_PAD_": str(64 * 1024 * 1024),
    }
    file = Path(os.environ.get("LIFELONG_CONFIG", "lifelong.toml"))
    if file.is_file():
        found["LIFELONG_CONFIG"] = str(file.resolve())
    return found


def parent_process() -> int:
    """The process whose end is the end of this worker.

    It may have died before anybody looks, so who starts BentoML says its id; the one that is asked for here and now
    is the parent only where BentoML was started directly.
    """
    return int(os.environ.get(PARENT) or os.getppid())


def check_port(host: str, port: int) -> None:
    """Whether a server could listen there.

    Raises:
        ConfigurationError: the host is not an IP address of this machine, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            raise ConfigurationError(
                f"the service cannot listen on {host}:{port}: {error.strerror or error}.",
                field="LIFELONG_PORT",
                mend="Choose a free port, or stop what listens there.",
            ) from error


def check_database(settings: Settings) -> None:
    """Find out now what would make every worker fail again and again.

    Raises:
        ConfigurationError: the database is missing, has the schema of another version or cannot be written.
        UnavailableError: the database does not answer.
    """
    from lifelong_core.store import Store

    with Store.open(settings.resolved_database_url, settings.resolved_artifacts_url) as store:
        store.check_writable()


def start_checker(settings: Settings) -> int:
    """Check the database in a child process; its id, for `await_checker`, which may be called after an exec."""
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        check_database(settings)
        status = 0
    except LifelongError as error:
        report(error)
        status = REFUSED
    except Exception:  # noqa: BLE001 - a child must never run on into the code of its parent, whatever happens
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def await_checker() -> int:
    """The verdict of the checker that the environment names: 0, or the exit status with which to give up.

    Where there is none (BentoML was started directly), the check is made here and now.
    """
    child = os.environ.pop(CHECKER, None)
    if child is not None:
        _, status = os.waitpid(int(child), 0)
        return os.waitstatus_to_exitcode(status)
    try:
        settings = Settings.load()
        _check_absolute(settings)
        check_database(settings)
    except LifelongError as error:
        report(error)
        return REFUSED
    return 0


def _check_absolute(settings: Settings) -> None:
    """BentoML changes to the folder of its bento: a relative path would mean another folder there."""
    if not settings.data_directory.is_absolute():
        raise ConfigurationError(
            f"expected an absolute path, got {str(settings.data_directory)!r}.",
            field="LIFELONG_DATA_DIRECTORY",
            mend="Give the whole path, or start with `lifelong serve`, which does.",
        )


def report(error: LifelongError) -> None:
    """One line that says why the service does not start."""
    sys.stderr.write(f"lifelong serve: {error}\n")
    sys.stderr.flush()
