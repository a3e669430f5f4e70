"""Clocks that are wrong by an hour, and clocks that jump: windows, summaries and cycles stay correct."""

from lifelong_core.store import logged_at
from tests.faults import shifted
from tests.faults.trial import Outcome, Scale, under_load
from tests.faults.world import World

HOUR = 3600.0
_JUMPS = (HOUR, -HOUR, 0.0)


def clock_jumps(world: World, scale: Scale) -> Outcome:
    """The clocks of the workers, of the monitor, and of both jump an hour ahead, two hours back, and to normal."""
    workers = shifted.Clock(world.folder / "workers.clock")
    monitor = shifted.Clock(world.folder / "monitor.clock")
    # Ids never decrease within a process: a late clock has an effect only in a process that starts with it.
    workers.set(-HOUR)
    world.start_service(command=shifted.SERVICE, environment=workers.variables)
    world.start_monitor(command=shifted.MONITOR, environment=monitor.variables)
    try:
        with under_load(world, "clock_jumps", scale) as trial:
            trial.wait_for_cycles(1)
            both = (workers, monitor)
            for clocks in (both,) if scale.is_quick else ((workers,), (monitor,), both):
                for ahead in _JUMPS:
                    with trial.fault():
                        for clock in clocks:
                            clock.set(ahead)
                        trial.wait_for_cycles(scale.count(5, 2))
            outcome = trial.conclude(in_order=False)
            made = [
                logged_at(one).timestamp() for answer in trial.load.answers for one in answer.prediction_ids
            ]
            outcome.figures["hours_between_ids"] = (max(made) - min(made)) / HOUR
            if max(made) - min(made) < 2 * HOUR:
                outcome.violations.append("the clock of the workers did not jump")
            return outcome
    finally:
        # Later scenarios restart them with the right clock.
        world.stop_monitor()
        world.stop_service()
