"""Heads are swapped at the maximum rate under load: no answer mixes two heads, none uses an old head for long."""

import time

import numpy as np

from lifelong_core.deploy import PostProcessingHead
from tests.faults import checks
from tests.faults.trial import Outcome, Scale, under_load
from tests.faults.world import MODEL, World
from tests.integration.installation import CLASS_NAMES, COSTS

SWAP_SECONDS = 1.0
"""Time in seconds after which every worker serves a new head: a guarantee of the product."""
_CLIENTS = 4


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
            time.sleep(SWAP_SECONDS + 0.5)
        trial.faults = swaps
        answered = {answer.head_version for answer in trial.load.answers}
        trial.figures["heads_that_answered"] = len(answered & published.keys())
        trial.load.stop()
        trial.violations += checks.late_heads(trial.load.answers, published, within=SWAP_SECONDS)
        return trial.conclude(is_hidden=True)


def distinct_head(number: int) -> PostProcessingHead:
    """Return a head with other decisions and probabilities than all other numbers."""
    bias = np.roll([2.0 + number / 64, 0.0, -1.0], number)
    return PostProcessingHead(1.0 + number / 128, bias, COSTS, [1 / 3] * 3, CLASS_NAMES)
