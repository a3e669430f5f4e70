"""Is `adapt` safe to run unattended? Swaps without a shift, harmful swaps, gain kept, refusals under other shifts.

Calibration sets are redrawn from each task; windows come from the samples that are left. What a swap wins or loses is
computed on that whole population, class by class, so it carries no noise of the window.
"""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.datasets import Task, draw, redrawn
from lifelong_core.deploy import (
    AdaptationPolicy,
    FittedQuantifier,
    LabeledLogits,
    PostProcessingHead,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.adaptation.gain import LOWEST_PROBABILITY
from lifelong_core.deploy.labeled import class_means

HARMFUL = 0.005
"""A swap that loses more than half a point of accuracy is harmful."""
WORSE = 0.002
"""A swap that raises the log loss by more nats makes the probabilities worse."""
CALIBRATION_SHARE = 0.2
"""of the pool of a task; at most LARGEST_CALIBRATION samples"""
LARGEST_CALIBRATION = 2000
UNSEEN_SHARE = 0.1
"""of the window, when a class turns up that the model does not know"""


@dataclass(frozen=True)
class Case:
    """What one cycle did."""

    task: str
    scenario: str
    size: int
    calibration: int
    outcome: str
    gain: float
    """accuracy that a swap wins in the population, negative: loses; 0 without a swap"""
    log_loss_gain: float
    """nats per prediction that a swap wins in the population, negative: loses; 0 without a swap"""
    by_probability: bool
    """Did it swap for the probabilities alone?"""
    possible: float
    """accuracy that the head for the true prevalence would win, at least 0"""
    overruled: float
    """the same with `assumption_violated = "report"`, which goes on where the default refuses"""
    seconds: float


@dataclass(frozen=True)
class Installation:
    """A model that serves: its calibration set, quantifier and first head, and the population it meets."""

    task: str
    calibration: LabeledLogits
    population: LabeledLogits
    fitted: FittedQuantifier
    head: PostProcessingHead

    @classmethod
    def of(cls, task: Task, rng: np.random.Generator, method: str) -> "Installation":
        """With a calibration set that is drawn anew."""
        pool = task.pool
        share = min(CALIBRATION_SHARE, LARGEST_CALIBRATION / pool.samples)
        calibration, population = redrawn(pool, share, rng)
        return cls(
            task.name,
            calibration,
            population,
            quantifier(method).fit(calibration),
            fit_head(calibration, 1 - np.eye(task.classes)),
        )

    def accuracy(self, head: PostProcessingHead, prevalence: np.ndarray, logits: np.ndarray) -> float:
        """Of the head in a population with this prevalence, whose images give these logits."""
        right = head.apply(logits).decisions == self.population.labels
        by_class = np.bincount(self.population.labels, right, minlength=prevalence.size)
        return float(prevalence @ (by_class / self.population.counts))

    def log_loss(self, head: PostProcessingHead, prevalence: np.ndarray, logits: np.ndarray) -> float:
        """Of the head in a population with this prevalence, whose images give these logits."""
        labels = self.population.labels
        own = head.apply(logits).probabilities[np.arange(labels.size), labels]
        losses = -np.log(np.maximum(own, LOWEST_PROBABILITY))
        return float(prevalence @ class_means(losses, self.population))


@dataclass(frozen=True)
class Summary:
    """Cases of one scenario and window size."""

    scenario: str
    size: int
    windows: int
    swaps: int
    refusals: int
    harmful: int
    """swaps that lose more than HARMFUL"""
    harmful_without_test: int
    by_probability: int
    """swaps for the probabilities alone"""
    worse_probabilities: int
    """swaps that raise the log loss by more than WORSE"""
    kept: float
    """share of the possible gain; nan where there is next to none"""
    mean_gain: float
    mean_gain_without_test: float
    worst: float
    milliseconds: float
    """median of one cycle, with a quantifier that is fitted already"""

    @classmethod
    def of(cls, found: list[Case]) -> "Summary":
        """Of cases with one scenario and size."""
        gains, possible, overruled = (
            np.array([getattr(case, name) for case in found]) for name in ("gain", "possible", "overruled")
        )
        return cls(
            scenario=found[0].scenario,
            size=found[0].size,
            windows=len(found),
            swaps=sum(case.outcome == "swap" for case in found),
            refusals=sum(case.outcome == "refuse" for case in found),
            harmful=int((gains < -HARMFUL).sum()),
            harmful_without_test=int((overruled < -HARMFUL).sum()),
            by_probability=sum(case.by_probability for case in found),
            worse_probabilities=sum(case.log_loss_gain < -WORSE for case in found),
            kept=float(gains.sum() / possible.sum()) if possible.mean() > HARMFUL else float("nan"),
            mean_gain=float(gains.mean()),
            mean_gain_without_test=float(overruled.mean()),
            worst=float(gains.min()),
            milliseconds=1000 * float(np.median([case.seconds for case in found])),
        )


Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def scaled_down(logits: np.ndarray, _: np.random.Generator) -> np.ndarray:
    """The network became less sure."""
    return 0.7 * logits


def noisy(logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Noise of half a standard deviation of each logit."""
    return logits + rng.normal(size=logits.shape) * 0.5 * logits.std(axis=0)


def one_moved(logits: np.ndarray, _: np.random.Generator) -> np.ndarray:
    """The logit of one class is higher by 1."""
    moved = logits.copy()
    moved[:, 0] += 1
    return moved


def unseen_class(logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A tenth of the window are images of a class that the network does not know: logits between two classes."""
    rows = rng.permutation(logits.shape[0])[: round(UNSEEN_SHARE * logits.shape[0])]
    changed = logits.copy()
    others = rng.permutation(logits.shape[0])[: rows.size]
    changed[rows] = (logits[rows] + logits[others]) / 2 + rng.normal(size=changed[rows].shape)
    return changed


OTHER_SHIFTS: dict[str, Change] = {
    "logits x 0.7": scaled_down,
    "noise": noisy,
    "one logit + 1": one_moved,
    "unseen class": unseen_class,
}
OTHER_SHIFT_SIZE = 1000
_ORDER = ("no shift", "prevalence shift", *OTHER_SHIFTS)


def cycle(
    place: Installation, prevalence: np.ndarray, size: int, rng: np.random.Generator, scenario: str
) -> Case:
    """One window, judged by itself with the policy's defaults."""
    window, met = draw(place.population, prevalence, size, rng).logits, place.population.logits
    if scenario in OTHER_SHIFTS:
        window = OTHER_SHIFTS[scenario](window, rng)
        # Images of an unseen class are decided wrongly by any head: the gain is that on the others.
        met = met if scenario == "unseen class" else OTHER_SHIFTS[scenario](met, rng)
    begin = time.perf_counter()
    report = adapt(place.fitted, window, place.head, AdaptationPolicy())
    seconds = time.perf_counter() - begin
    overruled = report
    if report.outcome == "refuse":
        overruled = adapt(place.fitted, window, place.head, AdaptationPolicy(assumption_violated="report"))
    before = place.accuracy(place.head, prevalence, met)

    def gain(head: PostProcessingHead | None) -> float:
        return 0.0 if head is None else place.accuracy(head, prevalence, met) - before

    def log_loss_gain(head: PostProcessingHead) -> float:
        return place.log_loss(place.head, prevalence, met) - place.log_loss(head, prevalence, met)

    known = np.maximum(prevalence, 1e-6)
    oracle = fit_head(place.calibration, place.head.costs, target_prevalence=known / known.sum())
    return Case(
        task=place.task,
        scenario=scenario,
        size=size,
        calibration=place.calibration.samples,
        outcome=report.outcome,
        gain=gain(report.candidate),
        log_loss_gain=0.0 if report.candidate is None else log_loss_gain(report.candidate),
        by_probability=any(reason.code == "probability_gain_sufficient" for reason in report.reasons)
        and report.outcome == "swap",
        possible=max(0.0, gain(oracle)),
        overruled=gain(overruled.candidate),
        seconds=seconds,
    )


def cases(
    task: Task, *, seed: tuple[int, ...], windows: int, sizes: tuple[int, ...], method: str
) -> list[Case]:
    """One calibration set, and so many windows per size without a shift, a quarter as many with one, and a tenth for
    each other shift."""
    rng = np.random.default_rng(seed)
    place = Installation.of(task, rng, method)
    uniform = np.ones(task.classes)
    found: list[Case] = []
    for size in sizes:
        for index in range(windows):
            found.append(cycle(place, place.calibration.prevalence, size, rng, "no shift"))
            if index % 4 == 0:
                found.append(cycle(place, rng.dirichlet(uniform), size, rng, "prevalence shift"))
    for name in OTHER_SHIFTS:
        found += [
            cycle(place, rng.dirichlet(uniform), OTHER_SHIFT_SIZE, rng, name)
            for _ in range(max(1, windows // 10))
        ]
    return found


@dataclass(frozen=True)
class Stream:
    """An environment over time, with the sequential evidence: first without a shift, then with one."""

    task: str
    cycles: int
    """without a shift"""
    swaps: int
    """in these"""
    harmful: int
    possible: float
    """accuracy that the right head would win after the shift"""
    gain: float
    """accuracy that the head in force at the end has won"""
    samples_to_swap: float
    """after the shift; infinite: no swap within SHIFTED_CYCLES"""


NEW_SAMPLES = 200
"""of each cycle"""
WINDOW_CYCLES = 10
"""The window holds the samples of the last so many cycles."""
CALM_CYCLES, SHIFTED_CYCLES = 40, 20


def stream(task: Task, *, seed: tuple[int, ...], method: str) -> Stream:
    """Cycles as the monitor runs them: a sliding window for the estimate, each new sample once for the evidence."""
    rng = np.random.default_rng(seed)
    place = Installation.of(task, rng, method)
    head, evidence, met = place.head, None, place.population.logits
    calm, shifted = place.calibration.prevalence, rng.dirichlet(np.ones(task.classes))
    recent: list[np.ndarray] = []
    swaps = harmful = 0
    samples_to_swap = np.inf
    for number in range(CALM_CYCLES + SHIFTED_CYCLES):
        prevalence = calm if number < CALM_CYCLES else shifted
        recent = [*recent, draw(place.population, prevalence, NEW_SAMPLES, rng).logits][-WINDOW_CYCLES:]
        report = adapt(
            place.fitted,
            np.vstack(recent),
            head,
            AdaptationPolicy(),
            new_buckets=[recent[-1]],
            evidence=evidence,
        )
        evidence = report.evidence
        if report.outcome == "swap" and report.candidate is not None:
            lost = place.accuracy(head, prevalence, met) - place.accuracy(report.candidate, prevalence, met)
            harmful += lost > HARMFUL
            head = report.candidate
            if number < CALM_CYCLES:
                swaps += 1
            else:
                samples_to_swap = min(samples_to_swap, (number - CALM_CYCLES + 1) * NEW_SAMPLES)
    known = np.maximum(shifted, 1e-6)
    oracle = fit_head(place.calibration, place.head.costs, target_prevalence=known / known.sum())
    before = place.accuracy(place.head, shifted, met)
    return Stream(
        task=task.name,
        cycles=CALM_CYCLES,
        swaps=swaps,
        harmful=harmful,
        possible=max(0.0, place.accuracy(oracle, shifted, met) - before),
        gain=place.accuracy(head, shifted, met) - before,
        samples_to_swap=samples_to_swap,
    )


def measure(
    tasks: list[Task], *, seed: int, draws: int, windows: int, sizes: tuple[int, ...], method: str
) -> tuple[list[Case], list[Stream]]:
    """`cases` and `stream` for each task with `draws` calibration sets, in two processes."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        single = [
            pool.submit(cases, task, seed=(seed, number, index), windows=windows, sizes=sizes, method=method)
            for number, task in enumerate(tasks)
            for index in range(draws)
        ]
        streams = [
            pool.submit(stream, task, seed=(seed + 1, number, index), method=method)
            for number, task in enumerate(tasks)
            for index in range(draws)
        ]
        return [case for job in single for case in job.result()], [job.result() for job in streams]


def summary(found: list[Case]) -> list[Summary]:
    """One line per scenario and window size."""
    keys = sorted(
        {(case.scenario, case.size) for case in found}, key=lambda key: (_ORDER.index(key[0]), key[1])
    )
    return [Summary.of([case for case in found if (case.scenario, case.size) == key]) for key in keys]
