"""`python -m lifelong_service`: check what can be checked, then be BentoML's server."""

import sys

from lifelong_core.errors import LifelongError
from lifelong_core.settings import Settings
from lifelong_service.launch import REFUSED, report, serve


def main() -> None:
    """Start the service; does not return."""
    try:
        serve(Settings.load())
    except LifelongError as error:
        report(error)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
