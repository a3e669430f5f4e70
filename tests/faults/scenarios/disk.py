"""A disk without space: 503 with Retry-After, no crash, and recovery as soon as there is space."""

import errno
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.trial import Outcome, Scale, Trial, under_load
from tests.faults.world import World

DISK = "64m"
_BLOCK = bytes(1 << 16)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a separate disk in memory as the data directory of `folder`."""
    data = folder / "data"
    data.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(data)]
    mounted = subprocess.run(mounting, capture_output=True, text=True, check=False)
    assert mounted.returncode == 0, (
        f"a small disk cannot be mounted: {mounted.stderr.strip()} Run this as root, or in `unshare -Urm`."
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(data)], check=True)


def disk_full(world: World, scale: Scale) -> Outcome:
    """The disk with database and spool is filled, and freed again."""
    filler = world.settings.data_directory / "filler"
    with under_load(world, "disk_full", scale) as trial:
        time.sleep(scale.of(5, 1))
        processes = {process.pid for process in world.service.processes()}
        for _ in range(scale.count(5, 1)):
            began = time.monotonic()
            with trial.fault():
                fill(filler)
                time.sleep(scale.of(10, 3))
                filler.unlink()
            freed_at = time.monotonic()
            time.sleep(scale.of(5, 2))
            _expect_recovery(trial, began, freed_at)
        if {process.pid for process in world.service.processes()} != processes:
            trial.violations.append("a process of the service died of a full disk")
        trial.figures["disk"] = DISK
        return trial.conclude()


def _expect_recovery(trial: Trial, began: float, freed_at: float) -> None:
    """Check that requests were refused while the disk was full, and answered again without a restart."""
    answers = list(trial.load.answers)
    if not any(one.refusals for one in answers if began <= one.due_at <= freed_at):
        trial.violations.append("no request was refused while the disk was full: it was not")
    recovered = [one.received_at for one in answers if one.sent_at > freed_at]
    if recovered:
        seconds = min(recovered) - freed_at
        trial.figures["seconds_to_recover"] = max(seconds, trial.figures.get("seconds_to_recover", 0.0))
    else:
        trial.violations.append("no request was answered when there was space again")


def fill(file: Path) -> None:
    """Write to the file until the disk is full."""
    with file.open("wb", buffering=0) as stream:
        block = _BLOCK
        while block:
            try:
                stream.write(block)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                block = block[: len(block) // 2]
