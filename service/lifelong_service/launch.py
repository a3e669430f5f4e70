"""How the service is started: one command line and environment, whoever starts it."""

import os
import socket
import sys
from pathlib import Path

from lifelong_core.errors import ConfigurationError
from lifelong_core.settings import Settings
from lifelong_core.store import Store

GRACE_SECONDS = 5
"""What is in flight at SIGTERM has this long to be answered."""


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


def check(settings: Settings) -> None:
    """Find out now what would make the workers fail again and again.

    Raises:
        ConfigurationError: the port is taken, or the database is missing or of another version.
        UnavailableError: the database does not answer.
    """
    check_port(settings.host, settings.port)
    Store.open(settings.resolved_database_url, settings.resolved_artifacts_url).close()


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
