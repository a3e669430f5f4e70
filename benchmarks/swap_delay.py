"""Number of predictions from a change of the prevalence to the swap of the head, with a real store and monitor.

    python -m benchmarks.swap_delay [--json] [--quick]

A population sends a prediction each second. After 1,000 of the assumed prevalence it changes; the monitor ticks every
25 predictions, with the default settings. The peer is the sequential test alone, looked at every 25 predictions:
`evidence` is how many it needs to reach its alarm. A swap needs more than the alarm: `minimum_samples`, the assumption
test and the interval of the gain. By the clock alone, it waits for the full hour (`clock`: 1,800 on average).
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.machine import describe
from benchmarks.many_populations import CLASSES, EVEN, draw, installation, log
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import FittedQuantifier, LabeledLogits
from lifelong_core.deploy.fitted_calibration import FittedCalibration
from lifelong_core.deploy.shift.betting import bucket_scores
from lifelong_core.deploy.shift.evidence import update_evidence
from lifelong_core.store import Model, Store
from lifelong_monitor.cycle.due_times import due_before, interval_of
from lifelong_monitor.cycle.reports import report_of
from lifelong_monitor.cycle.subject import FittedQuantifiers
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker

SEED = 0
LOOK = 25
BEFORE = 1000
MOST_SAMPLES = 4000
"""A stream without a swap by then counts as never swapped."""
SHIFTS = (0.3, 0.5, 1.0)
"""L1 distance"""
ENVIRONMENT = "default"


@dataclass(frozen=True)
class Delay:
    """Medians over streams whose prevalence changes in a direction drawn at random."""

    shift: float
    streams: int
    swapped: float
    """share of the streams with a swap"""
    evidence_samples: float
    """since the change until the sequential test gave its alarm"""
    swap_samples: float
    """until the head was swapped"""
    ratio: float
    """of swap_samples to evidence_samples, median over the streams"""
    ratio_to_minimum: float
    """the same, where the evidence needs fewer samples than the policy's minimum: to that"""
    clock_samples: float
    """until the next full hour, on average"""
    cycles: float
    """between the change and the swap"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="two streams of each shift instead of ten")
    options = parser.parse_args()
    delays = [measure(shift, 2 if options.quick else 10) for shift in SHIFTS]
    if options.json:
        report = {"benchmark": "swap_delay", "seed": SEED, "look": LOOK, **describe("sqlalchemy")}
        print(json.dumps({**report, "delays": [asdict(one) for one in delays]}))
        return
    print(
        f"{'L1':>5}{'swapped':>9}{'evidence':>10}{'swap':>7}{'ratio':>7}{'to minimum':>12}{'cycles':>8}{'clock':>7}"
    )
    for one in delays:
        print(
            f"{one.shift:>5.1f}{one.swapped:>9.0%}{one.evidence_samples:>10.0f}{one.swap_samples:>7.0f}"
            f"{one.ratio:>7.2f}{one.ratio_to_minimum:>12.2f}{one.cycles:>8.1f}{one.clock_samples:>7.0f}"
        )


def measure(shift: float, streams: int) -> Delay:
    """Streams in stores of their own."""
    rng = np.random.default_rng([SEED, int(1000 * shift)])
    needed: list[float] = []
    swapped: list[float] = []
    cycles: list[int] = []
    for _ in range(streams):
        with installation("sqlite", None) as (configured, store, model):
            stream = Stream(store, configured, model)
            stream.send_before(rng)
            evidence, swap, looks = stream.follow(_moved(shift, rng), rng)
        needed.append(evidence)
        swapped.append(swap)
        cycles.append(looks)
    settings = Settings()
    least = [max(one, settings.policy.minimum_samples) for one in needed]
    return Delay(
        shift=shift,
        streams=streams,
        swapped=float(np.mean([one < MOST_SAMPLES for one in swapped])),
        evidence_samples=float(np.median(needed)),
        swap_samples=float(np.median(swapped)),
        ratio=float(np.median(np.divide(swapped, needed))),
        ratio_to_minimum=float(np.median(np.divide(swapped, least))),
        clock_samples=settings.cycle_interval_seconds / 2,
        cycles=float(np.median(cycles)),
    )


class Stream:
    """One population of a store, with a monitor whose clock goes on by a second for each prediction."""

    def __init__(self, store: Store, settings: Settings, model: Model) -> None:
        self._store = store
        self._interval = interval_of(settings.cycle_interval_seconds)
        self._model = model
        self._settings = settings
        self._ticker = Ticker(store, settings, Exporter(cycle_interval_seconds=3600))
        self._now = due_before(datetime.now(UTC), self._interval) + timedelta(seconds=1)

    def send_before(self, rng: np.random.Generator) -> None:
        """The predictions of the assumed prevalence."""
        for _ in range(BEFORE // LOOK):
            self._send(draw(EVEN, LOOK, rng))

    def follow(self, prevalence: np.ndarray, rng: np.random.Generator) -> tuple[int, int, int]:
        """Predictions until the evidence is enough and until the swap, and the cycles meanwhile."""
        reaches_alarm = self._sequential_test()
        before = len(self._store.cycles.list())
        evidence_at = swap_at = MOST_SAMPLES
        cycles = 0
        for sent in range(LOOK, MOST_SAMPLES, LOOK):
            drawn = draw(prevalence.tolist(), LOOK, rng)
            if evidence_at == MOST_SAMPLES and reaches_alarm(drawn):
                evidence_at = sent
            if swap_at == MOST_SAMPLES:
                self._send(drawn)
                cycles = len(self._store.cycles.list()) - before
                if len(self._store.heads.list(self._model.reference)) > 1:
                    swap_at = sent
            if MOST_SAMPLES not in (evidence_at, swap_at):
                break
        return evidence_at, swap_at, cycles

    def _sequential_test(self) -> Callable[[LabeledLogits], bool]:
        """Goes on from the evidence of the last cycle; each call is a look."""
        last = self._store.cycles.last(self._model.id, ENVIRONMENT)
        evidence = None if last is None else report_of(last).evidence
        fitted = FittedQuantifiers().get(
            self._store, self._model, self._model.calibration_set_id or 0, self._settings.quantifier
        )
        if evidence is None or not isinstance(fitted, FittedQuantifier):
            raise RuntimeError("no evidence was gathered before the change.")
        head = self._store.heads.get(self._model.reference, 1).head
        reference, policy = FittedCalibration.of(fitted).score_reference(head), self._settings.policy
        alarm = float(np.log(policy.average_run_length))
        state = [evidence]

        def look(drawn: LabeledLogits) -> bool:
            bucket = bucket_scores(head, drawn.logits)
            state[0] = update_evidence(
                state[0], reference, [bucket], key=evidence.key, tolerance=policy.tolerance
            )
            return state[0].log_e_value >= alarm

        return look

    def _send(self, drawn: LabeledLogits) -> None:
        log(self._store, self._model, [ENVIRONMENT], drawn.logits)
        self._now += timedelta(seconds=LOOK)
        self._ticker.tick(self._now, due_before(self._now, self._interval))


def _moved(distance: float, rng: np.random.Generator) -> np.ndarray:
    """A prevalence at this L1 distance from the even one, in a direction drawn at random."""
    while True:
        direction = rng.normal(size=CLASSES)
        direction -= direction.mean()
        moved = np.array(EVEN) + distance * direction / np.abs(direction).sum()
        if moved.min() >= 0:
            return moved


if __name__ == "__main__":
    main()
