"""A spool with a torn last record, and erasure of a group while its predictions are in the spool."""

import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np

from lifelong_core.store import LogEntry, Prediction, new_prediction_id
from lifelong_core.store.spool.spool import Spool
from tests.faults import checks
from tests.faults.trial import Outcome, Scale, Trial, under_load
from tests.faults.world import World

_MAXIMUM_BYTES = 2**30


def spool_torn(world: World, scale: Scale) -> Outcome:
    """The service is killed in an outage; copies of its spool are cut at every byte, and it restarts on a torn one.

    After the database is back and before the restart, a group with predictions in the spool is erased.
    """
    folder = world.settings.resolved_spool_directory
    erased: dict[bytes, datetime] = {}
    with under_load(world, "spool_torn", scale) as trial:
        damaged = world.spool().damaged_records
        model_id = world.model.id
        time.sleep(scale.of(5, 1))
        for number in range(scale.count(10, 1)):
            with trial.fault(), ExitStack() as outage:
                outage.enter_context(world.database_away())
                time.sleep(scale.of(2, 1))
                with trial.load.paused():
                    world.service.kill()
                    if number == 0:
                        _cut_everywhere(trial, folder, scale.count(3000, 150))
                    _tear(world, folder, model_id)
                    outage.close()
                    erased |= _erase(trial)
                    world.start_service()
                trial.database_is_back()
            damaged += 1
            _expect_damaged(trial, damaged)
        if not scale.is_quick:
            world.service.kill()
            world.start_service()
            _expect_damaged(trial, damaged)
        return trial.conclude(erased=erased)


def _cut_everywhere(trial: Trial, folder: Path, span: int) -> None:
    """Cut copies of the spool at each of the last `span` bytes, and check their delivery."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "spool"
        size = _last_segment(folder).stat().st_size
        cuts: list[checks.Cut] = []
        for offset in range(max(0, size - span), size + 1):
            shutil.copytree(folder, copy)
            with _last_segment(copy).open("r+b") as segment:
                segment.truncate(offset)
            cuts.append(_cut(copy, offset))
            again = _cut(copy, offset)
            if again.delivered or again.damaged != cuts[-1].damaged:
                trial.violations.append(
                    f"cut at byte {offset}: opened again, it gave or counted something anew"
                )
            shutil.rmtree(copy)
    # The last cut is at the end: that copy is complete.
    trial.violations += checks.torn_spool(cuts, cuts[-1].delivered)
    waiting = {one for answer in trial.load.answers for one in answer.prediction_ids} & set(
        cuts[-1].delivered
    )
    if len(waiting) != len(cuts[-1].delivered) or not waiting:
        trial.violations.append("the spool held other predictions than were answered")
    trial.figures["cuts"] = len(cuts)


def _cut(folder: Path, offset: int) -> checks.Cut:
    delivered: list[UUID] = []

    def write(entries: Sequence[LogEntry]) -> None:
        delivered.extend(prediction.id for entry in entries for prediction in entry.predictions)

    with closing(Spool(folder, maximum_bytes=_MAXIMUM_BYTES)) as spool:
        while spool.deliver(write):
            pass
        return checks.Cut(offset, tuple(delivered), spool.state().damaged_records)


def _tear(world: World, folder: Path, model_id: int) -> None:
    """Append a part of another, unanswered record, as after a power failure."""
    row = np.zeros(3, np.float32)
    prediction = Prediction(new_prediction_id(), model_id, "never-answered", 1, 0, row, None)
    before = {one: one.stat().st_size for one in folder.glob("*.segment")}
    with closing(Spool(folder, maximum_bytes=_MAXIMUM_BYTES)) as spool:
        spool.append([LogEntry((prediction,))])
    segment = _last_segment(folder)
    begin, end = before.get(segment, 0), segment.stat().st_size
    with segment.open("r+b") as file:
        file.truncate(world.random.randrange(begin + 1, end))


def _erase(trial: Trial) -> dict[bytes, datetime]:
    """Erase the group of the latest answers, whose predictions are in the spool; return its hash and the time."""
    group = next(answer.group for answer in reversed(trial.load.answers) if answer.group is not None)
    hashed = trial.world.group_hash(group)
    trial.world.store.erasure.erase([hashed], actor="faults")
    return {hashed: datetime.now(UTC)}


def _expect_damaged(trial: Trial, expected: int) -> None:
    damaged = trial.world.spool().damaged_records
    if damaged != expected:
        trial.violations.append(f"{damaged} damaged records were counted, there were {expected}")


def _last_segment(folder: Path) -> Path:
    return max(folder.glob("*.segment"))
