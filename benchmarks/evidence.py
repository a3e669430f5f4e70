"""The sequential evidence of a shift: rate of false alarms, and samples until a shift is detected.

    python -m benchmarks.evidence [--json] [--quick]

Everything is drawn with replacement from one set of labelled logits per task, calibration sets included, so that a
class looks exactly alike in both and the prevalence of every stream is known exactly. A look is an hour.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.datasets import shared_task, with_labels
from benchmarks.machine import describe
from lifelong_core.deploy import AdaptationPolicy, LabeledLogits, PostProcessingHead, ShiftEvidence, fit_head
from lifelong_core.deploy.shift.betting import bucket_scores
from lifelong_core.deploy.shift.evidence import update_evidence
from lifelong_core.deploy.shift.reference import ScoreReference

SEED = 0
HOURS_PER_YEAR = 8760
POLICY = AdaptationPolicy()
ALARM = float(np.log(POLICY.average_run_length))
RARE = (1e-2, 1e-3, 1e-4)
"""What a head assumes of a class that was missing for a while; a swap floors it at half a sample or so."""
MOST_SAMPLES = 40_000
"""A shift that is not found by then counts as found then."""


@dataclass(frozen=True)
class Delay:
    """How many samples a shift needs to be found; median over streams with directions drawn at random."""

    task: str
    classes: int
    calibration: int
    shift: float
    """L1 distance from the assumed prevalence"""
    samples: float
    found: float
    """share of the streams in which it was found at all"""


@dataclass(frozen=True)
class Calm:
    """Looks at streams with the assumed prevalence."""

    task: str
    classes: int
    calibration: int
    streams: int
    years: float
    """of all streams together"""
    alarming: int
    """streams with any alarm"""
    milliseconds: float
    """per look, scores included"""


@dataclass(frozen=True)
class Return:
    """How many samples it takes to find a class that the head hardly assumes; every class has its turns."""

    task: str
    classes: int
    calibration: int
    assumed: float
    """prevalence of the class for the head; all others are alike"""
    returned: float
    """its prevalence from then on"""
    samples: float
    """median over streams"""
    found: float
    """share of the streams in which it was found at all"""


@dataclass(frozen=True)
class Population:
    """Labelled logits to draw from."""

    name: str
    data: LabeledLogits

    def draw(self, prevalence: np.ndarray, size: int, rng: np.random.Generator) -> LabeledLogits:
        """Samples of a population with this prevalence."""
        return with_labels(self.data, rng.choice(self.data.classes, size=size, p=prevalence), rng)


def populations() -> Iterator[Population]:
    rng = np.random.default_rng(SEED)
    for classes, separation in ((2, 2.0), (3, 1.5)):
        labels = np.repeat(np.arange(classes), 20_000)
        noise = rng.normal(size=(labels.size, classes))
        yield Population(
            f"Gaussians, {classes} classes",
            LabeledLogits(separation * np.eye(classes)[labels] + noise, labels),
        )
    for name in ("lapgyn4_surgical_actions", "cifar10_resnet50"):
        yield Population(name, shared_task(name).pool)


def installed(
    population: Population, size: int, rng: np.random.Generator, prevalence: np.ndarray | None = None
) -> tuple[np.ndarray, PostProcessingHead, ScoreReference]:
    """The prevalence that a head assumes, the head, and what the evidence against it is measured by.

    The calibration set has all classes alike; so does the prevalence, where none is given.
    """
    classes = population.data.classes
    alike = np.full(classes, 1 / classes)
    prevalence = alike if prevalence is None else prevalence
    calibration = population.draw(alike, size, rng)
    while not calibration.counts.all():
        calibration = population.draw(alike, size, rng)
    head = fit_head(calibration, 1 - np.eye(classes), target_prevalence=prevalence)
    return prevalence, head, ScoreReference.of(calibration, head)


def shifted(prevalence: np.ndarray, distance: float, rng: np.random.Generator) -> np.ndarray:
    """Another prevalence at this L1 distance, in a direction drawn at random."""
    while True:
        direction = rng.normal(size=prevalence.size)
        direction -= direction.mean()
        moved = prevalence + distance * direction / np.abs(direction).sum()
        if moved.min() >= 0:
            return moved


def delay(population: Population, size: int, distance: float, streams: int, look: int) -> Delay:
    rng = np.random.default_rng([SEED, size, int(1000 * distance)])
    needed: list[int] = []
    for _ in range(streams):
        prevalence, head, reference = installed(population, size, rng)
        target = shifted(prevalence, distance, rng)
        needed.append(samples_to_find(population, head, reference, target, look, rng))
    found = float(np.mean([one < MOST_SAMPLES for one in needed]))
    return Delay(population.name, population.data.classes, size, distance, float(np.median(needed)), found)


def comeback(population: Population, size: int, assumed: float, streams: int, look: int) -> Return:
    classes, returned = population.data.classes, 0.1
    rng = np.random.default_rng([SEED, size, int(1 / assumed)])
    needed: list[int] = []
    for stream in range(streams):
        before, after = np.empty(classes), np.empty(classes)
        for prevalence, one in ((before, assumed), (after, returned)):
            prevalence[:] = (1 - one) / (classes - 1)
            prevalence[stream % classes] = one
        _, head, reference = installed(population, size, rng, before)
        needed.append(samples_to_find(population, head, reference, after, look, rng))
    found = float(np.mean([one < MOST_SAMPLES for one in needed]))
    return Return(population.name, classes, size, assumed, returned, float(np.median(needed)), found)


def samples_to_find(
    population: Population,
    head: PostProcessingHead,
    reference: ScoreReference,
    target: np.ndarray,
    look: int,
    rng: np.random.Generator,
) -> int:
    """How many samples of a population with the target prevalence raise an alarm; at most MOST_SAMPLES."""
    evidence: ShiftEvidence | None = None
    for seen in range(look, MOST_SAMPLES, look):
        bucket = bucket_scores(head, population.draw(target, look, rng).logits)
        evidence = update_evidence(evidence, reference, [bucket], key="", tolerance=POLICY.tolerance)
        if evidence.log_e_value >= ALARM:
            return seen
    return MOST_SAMPLES


def calm(population: Population, size: int, streams: int, years: float, look: int) -> Calm:
    rng = np.random.default_rng([SEED, size])
    alarming, spent, looks = 0, 0.0, int(years * HOURS_PER_YEAR)
    for _ in range(streams):
        prevalence, head, reference = installed(population, size, rng)
        # Drawn once and cut anew for every look: drawing takes longer than looking.
        stock = population.draw(prevalence, 200_000, rng).logits
        evidence: ShiftEvidence | None = None
        highest = 0.0
        begin = time.perf_counter()
        for _ in range(looks):
            bucket = bucket_scores(head, stock[rng.integers(stock.shape[0], size=look)])
            evidence = update_evidence(evidence, reference, [bucket], key="", tolerance=POLICY.tolerance)
            highest = max(highest, evidence.log_e_value)
        spent += time.perf_counter() - begin
        alarming += highest >= ALARM
    return Calm(
        population.name,
        population.data.classes,
        size,
        streams,
        streams * years,
        alarming,
        1000 * spent / (streams * looks),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="few and short streams")
    arguments = parser.parse_args()
    machine = describe("numpy", "scipy")
    print(f"machine: {json.dumps(machine)}\nseed {SEED}; alarm at one in {POLICY.average_run_length:,.0f}\n")
    streams, years = (2, 0.05) if arguments.quick else (8, 0.5)
    sizes = (500, 2000) if arguments.quick else (500, 2000, 20_000)
    shifts = (0.5, 0.2) if arguments.quick else (0.5, 0.2, 0.1)
    quiet: list[Calm] = []
    delays: list[Delay] = []
    returns: list[Return] = []
    for population in populations():
        for size in sizes[:2]:
            quiet.append(calm(population, size, streams, years, look=50))
            print(
                f"{quiet[-1].task:26s} calibration {size:6,d}: {quiet[-1].alarming} of {streams} streams alarmed "
                f"in {quiet[-1].years:g} years, {quiet[-1].milliseconds:.2f} ms per look",
                flush=True,
            )
        for size in sizes:
            for shift in shifts:
                delays.append(delay(population, size, shift, 3 if arguments.quick else 9, look=500))
                print(
                    f"{delays[-1].task:26s} calibration {size:6,d}: L1 {shift:.1f} found after "
                    f"{delays[-1].samples:6,.0f} samples (in {100 * delays[-1].found:.0f} % of the streams)",
                    flush=True,
                )
        for size in sizes[:2]:
            for assumed in RARE:
                returns.append(comeback(population, size, assumed, 3 if arguments.quick else 9, look=500))
                print(
                    f"{returns[-1].task:26s} calibration {size:6,d}: a class assumed at {assumed:g} that returns at "
                    f"{returns[-1].returned:g} found after {returns[-1].samples:6,.0f} samples "
                    f"(in {100 * returns[-1].found:.0f} % of the streams)",
                    flush=True,
                )
    if arguments.json:
        figures = {
            "benchmark": "evidence",
            "machine": machine,
            "seed": SEED,
            "policy": POLICY.to_document(),
            "calm": [asdict(one) for one in quiet],
            "delays": [asdict(one) for one in delays],
            "returns": [asdict(one) for one in returns],
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
