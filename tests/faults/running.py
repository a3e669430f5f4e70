"""Runs scenarios one after the other, on a shared installation per database or on a separate one."""

import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.faults.postgresql import MortalPostgreSQL
from tests.faults.scenarios import SCENARIOS, Entry
from tests.faults.trial import Outcome, Scale
from tests.faults.world import World

_HERE = Path(__file__).parent
_WORDS = 400
"""Characters that are kept of the beginning and the end of an error: some contain the log of a process."""


def run_all(
    kinds: Sequence[str],
    names: Sequence[str],
    scale: Scale,
    *,
    say: Callable[[str], None],
    keep: Path | None = None,
) -> Iterator[Outcome]:
    """Yield the outcomes of the scenarios, on each kind of database that they apply to.

    Args:
        kinds: kinds of databases.
        names: names of scenarios; empty: all.
        scale: full or shortened form.
        say: called with a message at the start of each scenario.
        keep: folder for the files of the installations, for diagnosis; None: they are deleted.
    """
    for kind in kinds:
        entries = [
            one
            for one in SCENARIOS
            if one.runs_on(kind, is_quick=scale.is_quick) and (not names or one.name in names)
        ]
        with ExitStack() as stack:
            if keep is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lifelong-faults-")))
            else:
                folder = keep.absolute() / kind
                folder.mkdir(parents=True)
            server = stack.enter_context(MortalPostgreSQL(listens=True)) if kind == "postgresql" else None
            yield from _run_on(kind, entries, folder, server, scale, say)


def _run_on(
    kind: str,
    entries: Iterable[Entry],
    folder: Path,
    server: MortalPostgreSQL | None,
    scale: Scale,
    say: Callable[[str], None],
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        world: World | None = None
        for number, entry in enumerate(entries):
            say(f"{entry.name} on {kind} ...")
            own = folder / str(number)
            own.mkdir()
            began = time.monotonic()
            try:
                if entry.disk is not None:
                    with entry.disk(own), World(kind, own, server, seed=scale.seed) as separate:
                        outcomes.append(entry.run(separate, scale))
                        separate.settle()
                else:
                    world = world or stack.enter_context(World(kind, own, server, seed=scale.seed))
                    outcomes.append(entry.run(world, scale))
            except Exception as error:  # noqa: BLE001 - recorded as the outcome; the others continue
                outcomes.append(_ended(entry, kind, error, time.monotonic() - began))
                # The state of the installation is unknown.
                stack.close()
                world = None
            last = outcomes[-1]
            say(f"  {last.seconds:.0f} s, {last.answered} answered, {len(last.violations)} violations so far")
        if world is not None:
            world.settle()
    return outcomes


def _ended(entry: Entry, kind: str, error: Exception, seconds: float) -> Outcome:
    steps = traceback.extract_tb(error.__traceback__)
    where = [step for step in steps if Path(step.filename).is_relative_to(_HERE)][-1]
    words = str(error).splitlines() or [""]
    story = " ... ".join(dict.fromkeys((words[0][:_WORDS], words[-1][-_WORDS:])))
    return Outcome(
        scenario=entry.name,
        database=kind,
        faults=0,
        answered=0,
        failed=0,
        lost=0,
        duplicated=0,
        seconds_to_deliver=None,
        milliseconds={},
        violations=[
            f"the scenario ended with {type(error).__name__} in {where.name}, line {where.lineno}: {story}"
        ],
        seconds=seconds,
    )
