"""All scenarios with their requirements, in the order of their runs on one installation."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests import tools
from tests.databases import KINDS
from tests.faults.scenarios import clocks, disk, kills, monitors, outages, soak, spool, swaps
from tests.faults.trial import Scenario


@dataclass(frozen=True)
class Entry:
    """One scenario."""

    run: Scenario
    databases: tuple[str, ...] = KINDS
    quick: tuple[str, ...] = KINDS
    """databases of the shortened form, where the fault or its effect depends on them"""
    disk: Callable[[Path], AbstractContextManager[None]] | None = None
    """creates the disk of a separate installation; None: the shared installation"""
    needs: tools.Tool | None = None
    """tool that the machine must have"""
    is_long: bool = False
    """whether its shortened form takes minutes and the whole machine, so that its test runs it alone"""

    def runs_on(self, kind: str, *, is_quick: bool) -> bool:
        """Whether the full or the shortened form has this scenario on a kind of database."""
        return kind in self.databases and (kind in self.quick or not is_quick)

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def description(self) -> str:
        """First paragraph of the docstring of the scenario."""
        return " ".join((self.run.__doc__ or "").partition("\n\n")[0].split())


SCENARIOS = (
    Entry(outages.database_outage),
    Entry(outages.database_hangs, databases=("postgresql",)),
    Entry(outages.network_black_hole, databases=("postgresql",), needs=tools.PACKET_FILTERS),
    Entry(kills.kill_postgresql, databases=("postgresql",)),
    Entry(swaps.thousand_swaps, quick=("postgresql",)),
    Entry(monitors.sick_monitor, quick=("postgresql",)),
    Entry(kills.kill_monitor, quick=("sqlite",)),
    Entry(monitors.two_monitors, quick=("postgresql",)),
    Entry(outages.worker_starts_in_outage, quick=("sqlite",)),
    Entry(spool.spool_torn, quick=("sqlite",)),
    # The next scenario restarts the service and need not wait for the worker that this one killed last.
    Entry(kills.kill_worker, quick=("postgresql",)),
    Entry(kills.kill_service),
    Entry(clocks.clock_jumps, quick=("sqlite",)),
    Entry(soak.serving_soak, is_long=True),
    Entry(disk.disk_full, databases=("sqlite",), disk=disk.small_disk, needs=tools.SMALL_DISKS),
)
