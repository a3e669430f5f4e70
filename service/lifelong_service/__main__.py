"""`python -m lifelong_service`: check what can be checked, then become BentoML's server."""

import os
import sys

from lifelong_core.errors import LifelongError
from lifelong_core.settings import Settings
from lifelong_service.launch import check, command, environment


def main() -> None:
    """Start the service; does not return."""
    try:
        settings = Settings.load()
        check(settings)
    except LifelongError as error:
        sys.stderr.write(f"lifelong serve: {error}\n")
        sys.exit(2)
    arguments = command(settings)
    os.execve(arguments[0], arguments, os.environ | environment(settings))  # noqa: S606 - our own command, no shell


if __name__ == "__main__":
    main()
