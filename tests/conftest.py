"""Fixtures that several tiers share."""

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

# Small matrices, and processes that share the cores: more threads of BLAS only wait for each other, ten times as long
# on two cores. It has to be said before numpy is imported; the processes that tests start inherit it.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# The width of a terminal, which pytest-xdist passes on: tables are then as narrow.
os.environ.pop("COLUMNS", None)

import numpy as np
import pytest
from hypothesis import settings

from lifelong_core.deploy import LabeledLogits
from tests import tools

if TYPE_CHECKING:
    from tests import databases

# No deadlines: how long an example takes depends on what else the machine does.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("nightly", deadline=None, derandomize=False, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@dataclass(frozen=True)
class SharedTask:
    """Logits of a real classifier on held-back and on deployment samples."""

    calibration: LabeledLogits
    deployment: LabeledLogits


@pytest.fixture(scope="session")
def shared_logits() -> Callable[[str], SharedTask]:
    """Loads one of the tasks in the folder that LIFELONG_SHARED_DATA names, else from ../shared/data."""
    folder = tools.real_logits()
    loaded: dict[str, SharedTask] = {}

    def load(name: str) -> SharedTask:
        if name not in loaded:
            with np.load(folder / f"{name}.npz") as arrays:
                loaded[name] = SharedTask(
                    *(
                        LabeledLogits(arrays[f"{split}_logits"], arrays[f"{split}_labels"])
                        for split in ("calibration", "deployment")
                    )
                )
        return loaded[name]

    return load


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator["databases.PostgreSQL"]:
    """The server of all tests that need no server of their own; it starts with the first of them."""
    from tests import databases  # which most tests do not need

    with databases.PostgreSQL() as server:
        yield server


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Count, on the very last line, the tests that were skipped because this machine lacks something."""
    result = yield
    terminal: pytest.TerminalReporter | None = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        skipped = [report.longrepr for report in terminal.stats.get("skipped", ())]
        reasons = [where[-1] for where in skipped if isinstance(where, tuple)]
        if (line := tools.count_line(reasons)) is not None:
            terminal.write_line(line, yellow=True)
    return result
