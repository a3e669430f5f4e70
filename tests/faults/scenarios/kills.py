"""SIGKILL at random moments under load: a worker, the service's parent, the monitor, PostgreSQL."""

import time

from tests.faults.trial import Outcome, Scale, under_load
from tests.faults.world import CYCLE_SECONDS, LEASE_SECONDS, World

_SKEWED = ((0.8, 0.1, 0.1), (1 / 3, 1 / 3, 1 / 3), (0.1, 0.1, 0.8))


def kill_worker(world: World, scale: Scale) -> Outcome:
    """One of the two workers is killed; the parent replaces it after some ten seconds."""
    with under_load(world, "kill_worker", scale) as trial:
        time.sleep(scale.of(5, 1))
        for number in range(kills := scale.count(50, 1)):
            workers = world.wait_for_workers()
            world.wait(1)
            with trial.fault():
                world.random.choice(workers).kill()
                time.sleep(scale.of(1, 3))
                if number + 1 < kills:
                    world.wait_for_workers()
        return trial.conclude()


def kill_service(world: World, scale: Scale) -> Outcome:
    """The parent process alone, or all processes of the service, are killed; the service is restarted."""
    with under_load(world, "kill_service", scale, workers=1) as trial:
        time.sleep(scale.of(5, 1))
        for number in range(scale.count(50, 1)):
            world.wait(1)
            with trial.fault():
                # In CI one variant per database.
                if (number + (world.server is None)) % 2 == 0:
                    orphans = world.replace_killed_parent()
                    trial.violations += [f"the worker {one.pid} outlives its parent" for one in orphans]
                else:
                    world.service.kill()
                    world.start_service()
        return trial.conclude()


def kill_monitor(world: World, scale: Scale) -> Outcome:
    """The monitor is killed, often within a cycle that swaps, because the prevalence changes continually."""
    with under_load(world, "kill_monitor", scale) as trial:
        trial.wait_for_cycles(1)
        for number in range(scale.count(50, 2)):
            trial.load.prevalence = _SKEWED[number % len(_SKEWED)]
            if world.monitor is not None:
                world.monitor.wait_until_it_watches()
            # Time for the end of the lease, and one or two cycles.
            world.wait(scale.of(LEASE_SECONDS + 2 * CYCLE_SECONDS, 2))
            with trial.fault():
                world.stop_monitor()
                world.start_monitor()
        time.sleep(scale.of(5, 1))
        return trial.conclude()


def kill_postgresql(world: World, scale: Scale) -> Outcome:
    """PostgreSQL is killed, and restarted up to a second later."""
    server = world.server
    assert server is not None
    with under_load(world, "kill_postgresql", scale) as trial:
        time.sleep(scale.of(5, 1))
        for _ in range(scale.count(50, 3)):
            world.wait(1)
            with trial.fault():
                server.kill()
                world.wait(1)
                server.start()
                trial.database_is_back()
        return trial.conclude(is_hidden=True)
