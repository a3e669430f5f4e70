"""SIGKILL at random moments under load: a worker, the service's parent, the monitor, PostgreSQL."""

import time

from tests.faults.trial import Outcome, Scale, under_load
from tests.faults.world import CYCLE_SECONDS, LEASE_SECONDS, World

_SKEWED = ((0.8, 0.1, 0.1), (1 / 3, 1 / 3, 1 / 3), (0.1, 0.1, 0.8))


def kill_worker(world: World, scale: Scale) -> Outcome:
    """SIGKILL to one of the two workers; the parent replaces it after some ten seconds."""
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
    """SIGKILL to the parent process alone, or to all processes of the service, and a new start."""
    with under_load(world, "kill_service", scale, workers=1) as trial:
        time.sleep(scale.of(5, 1))
        for number in range(scale.count(50, 1)):
            world.wait(1)
            with trial.fault():
                # In CI one way on one database, the other on the other.
                if (number + (world.server is None)) % 2 == 0:
                    world.service.process.kill()
                    world.service.process.wait()
                    # The workers notice by themselves, answer what they have, and end.
                    world.wait_for_free_port()
                else:
                    world.service.kill()
                world.start_service()
        return trial.conclude()


def kill_monitor(world: World, scale: Scale) -> Outcome:
    """SIGKILL to the monitor, often in the middle of a cycle that swaps: the mix of classes keeps changing."""
    with under_load(world, "kill_monitor", scale) as trial:
        trial.wait_for_cycles(1)
        for number in range(scale.count(50, 2)):
            trial.load.prevalence = _SKEWED[number % len(_SKEWED)]
            if world.monitor is not None:
                world.monitor.wait_until_it_watches()
            # A lease to wait for, and a cycle or two.
            world.wait(scale.of(LEASE_SECONDS + 2 * CYCLE_SECONDS, 2))
            with trial.fault():
                world.stop_monitor()
                world.start_monitor()
        time.sleep(scale.of(5, 1))
        return trial.conclude()


def kill_postgresql(world: World, scale: Scale) -> Outcome:
    """SIGKILL to PostgreSQL, and a start up to a second later."""
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
