"""All scenarios with their requirements, in the order in which one installation runs them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests import tools
from tests.databases import KINDS
from tests.faults.scenarios import clocks, disk, kills, monitors, outages, spool, swaps
from tests.faults.trial import Scenario


@dataclass(frozen=True)
class Entry:
    """One scenario."""

    run: Scenario
    databases: tuple[str, ...] = KINDS
    disk: Callable[[Path], AbstractContextManager[None]] | None = None
    """makes the disk of an installation of its own; None: it shares one with the others"""
    needs: tools.Tool | None = None
    """what a machine must allow for it"""

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def description(self) -> str:
        """The first paragraph of its docstring."""
        return " ".join((self.run.__doc__ or "").partition("\n\n")[0].split())


SCENARIOS = (
    Entry(outages.database_outage),
    Entry(outages.database_hangs, databases=("postgresql",)),
    Entry(outages.network_black_hole, databases=("postgresql",), needs=tools.PACKET_FILTERS),
    Entry(kills.kill_postgresql, databases=("postgresql",)),
    Entry(swaps.thousand_swaps),
    Entry(monitors.sick_monitor),
    Entry(kills.kill_monitor),
    Entry(monitors.two_monitors),
    Entry(outages.worker_starts_in_outage),
    Entry(spool.spool_torn),
    # The one after it starts the service anew and need not wait for the last worker that this one killed.
    Entry(kills.kill_worker),
    Entry(kills.kill_service),
    Entry(clocks.clock_jumps),
    Entry(disk.disk_full, databases=("sqlite",), disk=disk.small_disk, needs=tools.SMALL_DISKS),
)
