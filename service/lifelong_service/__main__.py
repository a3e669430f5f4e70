"""`python -m lifelong_service`: check what can be checked, then become BentoML's server."""

import os
import sys

from lifelong_core.errors import LifelongError
from lifelong_core.settings import Settings
from lifelong_service.launch import (
    CHECKER,
    PARENT,
    REFUSED,
    check_port,
    command,
    environment,
    report,
    start_checker,
)


def main() -> None:
    """Start the service; does not return."""
    try:
        settings = Settings.load()
        check_port(settings.host, settings.port)
        needed = environment(settings)
    except LifelongError as error:
        report(error)
        sys.exit(REFUSED)
    needed[CHECKER] = str(start_checker(settings))
    needed[PARENT] = str(os.getpid())  # the exec below keeps it
    arguments = command(settings)
    os.execve(arguments[0], arguments, os.environ | needed)  # noqa: S606 - our own command, no shell


if __name__ == "__main__":
    main()
