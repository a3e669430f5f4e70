"""Run the demo from its options to its output; the processes end in every case."""

import json
import signal
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from lifelong.demo.figures import compute_figures
from lifelong.demo.installation import install
from lifelong.demo.plot import save_plot
from lifelong.demo.processes import Processes
from lifelong.demo.report import print_report
from lifelong.demo.run import Steps, run_story
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.files import ensure_temporary_folder
from lifelong_core.store import Store

AGAIN_SECONDS = 1.0
"""Time until an interruption that had no effect is repeated."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_demo(seed: int, *, as_json: bool, plot: Path | None, keep_running: bool) -> None:
    """Run the demo and print its report, or one JSON object as the last line."""
    ensure_temporary_folder(Settings.load().data_directory)
    directory = Path(tempfile.mkdtemp(prefix="lifelong-demo-"))
    installation = install(directory)
    with Processes(directory, installation.environment_variables) as processes, interruptible():
        with Steps() as steps:
            story = run_story(installation, processes, seed, steps)
            with Store.from_settings(installation.settings) as store:
                figures = compute_figures(story, store)
        plot_file = (plot or directory / "demo.png").resolve()
        save_plot(story, figures, plot_file)
        if as_json:
            echo(json.dumps(figures.to_document()))
        else:
            print_report(story, figures, installation, str(plot_file), running=keep_running)
        sys.stdout.flush()
        while keep_running:
            time.sleep(1)


@contextmanager
def interruptible() -> Generator[None, None, None]:
    """Within the block, both signals raise KeyboardInterrupt or SystemExit, again and again until it is left.

    Once is not enough: an exception that is raised while an object is finalised is lost. After the block both signals
    are ignored, so that an impatient second Ctrl-C leaves no process behind.
    """
    exceptions: list[BaseException] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        if not exceptions:
            exceptions.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        raise exceptions[0]

    for number in (*_SIGNALS, signal.SIGALRM):
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
