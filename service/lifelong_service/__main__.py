"""`python -m lifelong_service`: check the installation, then run BentoML's server."""

import sys

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.logs import configure_logging, early_format
from lifelong_core.values.errors import LifelongError
from lifelong_service.process.launch import REFUSED, open_standard_streams, report, serve


def main() -> None:
    """Start the service; does not return."""
    open_standard_streams()
    configure_logging(early_format())
    try:
        settings = Settings.load()
        configure_logging(settings.log_format)
        serve(settings)
    except LifelongError as error:
        report(error)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
