"""`python -m lifelong_monitor`: run the daemon with the settings of the environment."""

import logging
import sys

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.files import ensure_temporary_folder, restrict_new_files
from lifelong_core.runtime.logs import configure_logging, early_format
from lifelong_core.runtime.tracing import start_tracing
from lifelong_core.values.errors import ConfigurationError
from lifelong_monitor.cycle.subject import check_method
from lifelong_monitor.daemon import Daemon
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.exporter.server import ScrapeAccess
from lifelong_monitor.jobs.running.runner import check_job_runner


def main() -> int:
    """Run until stopped by a signal. 0: stopped; 1: it could not start, and standard error says why."""
    restrict_new_files()
    configure_logging(early_format())
    log = logging.getLogger("lifelong_monitor")
    try:
        settings = Settings.load()
        configure_logging(settings.log_format)
        ensure_temporary_folder(settings.data_directory)
        check_method(settings.quantifier)
        check_job_runner(settings.job_runner)
        start_tracing(settings, "monitor")
        with Exporter(cycle_interval_seconds=settings.cycle_interval_seconds) as exporter:
            daemon = Daemon(settings, exporter)
            daemon.stop_on_signals()
            access = ScrapeAccess(settings, lambda: daemon.store)
            exporter.listen(settings.host, settings.monitor_port, check=access.check)
            log.info(
                "watching in mode %s; metrics at %s/metrics, a tick every %g s",
                settings.modes_in_words,
                settings.listening_url(settings.monitor_port),
                settings.cycle_interval_seconds,
            )
            daemon.run()
    except ConfigurationError as error:
        log.error("%s", error)  # noqa: TRY400 - the message says what to do; a traceback would bury it
        return 1
    log.info("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
