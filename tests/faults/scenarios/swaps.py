"""Heads are swapped at the maximum rate under load: no answer mixes two heads, none uses an old head for long."""

import time

import numpy as np

from lifelong_core.deploy import PostProcessingHead
from tests import tools
from tests.faults import checks
from tests.faults.trial import Outcome, Scale, Trial, under_load
from tests.faults.world import MODEL, World, patiently
from tests.integration.installation import CLASS_NAMES, COSTS

SWAP_SECONDS = 1.0
"""Time in seconds after which every worker serves a new head: a guarantee of the product."""
_CLIENTS = 4
_PATIENCE_SECONDS = 60.0


def thousand_swaps(world: World, scale: Scale) -> Outcome:
    """1,000 heads are published while 4 clients send without pauses."""
    published: dict[int, float] = {}
    with under_load(world, "thousand_swaps", scale, is_paced=False, threads=_CLIENTS) as trial:
        time.sleep(scale.of(5, 1))
        with trial.fault():
            for number in range(swaps := scale.count(1000, 60)):
                record = world.store.heads.publish(
                    MODEL, distinct_head(number), environment=trial.environment, actor="faults"
                )
                published[record.version] = time.monotonic()
                world.wait(0.1)
            last = max(published)
            if patiently(lambda: _workers_at(trial, last) == {"1", "2"}, _PATIENCE_SECONDS) is None:
                trial.violations.append(f"head {last} has not answered in both workers")
        trial.faults = swaps
        answered = {answer.head_version for answer in trial.load.answers}
        trial.figures["heads_that_answered"] = len(answered & published.keys())
        trial.load.stop()
        if tools.has_deadlines():
            trial.violations += checks.late_heads(trial.load.answers, published, within=SWAP_SECONDS)
        return trial.conclude(is_hidden=True)


def _workers_at(trial: Trial, version: int) -> set[str]:
    return {answer.worker for answer in list(trial.load.answers) if answer.head_version == version}


def distinct_head(number: int) -> PostProcessingHead:
    """Return a head with other decisions and probabilities than all other numbers."""
    bias = np.roll([2.0 + number / 64, 0.0, -1.0], number)
    return PostProcessingHead(1.0 + number / 128, bias, COSTS, [1 / 3] * 3, CLASS_NAMES)
