"""Run the demo's story: train, serve, stream, shift, wait for the swap, and compare."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from lifelong.client import Client
from lifelong.demo.figures import AffectedSeen, CycleSeen, Story
from lifelong.demo.images import (
    CLINIC_PREVALENCE,
    DEVELOPMENT_PREVALENCE,
    Split,
    Stream,
    draw_stream,
    split_digits,
)
from lifelong.demo.installation import (
    ENVIRONMENT,
    Installation,
    calibrate,
    register,
    write_calibration_images,
)
from lifelong.demo.observer import Observer
from lifelong.demo.processes import Processes
from lifelong.demo.traffic import Answers, draw_labelled, send, send_labels
from lifelong.demo.training import EPOCHS, export_onnx, train
from lifelong.rich_console import Console
from lifelong_core.configuration.serving_plan import serving_plan
from lifelong_core.deploy import AdaptationPolicy

DEVELOPMENT_IMAGES, SHIFTED_IMAGES = 400, 1500
ENOUGH_IMAGES = AdaptationPolicy().minimum_samples
"""of the new mix, before a cycle may judge by them alone"""
CYCLES_BEFORE_SHIFT = 2
SWAP_SECONDS = 1.0
"""The product's promise: a published head has reached every worker after this time."""


Advance = Callable[..., None]


class Steps:
    """A list of steps with a bar each; a context manager."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, title: str, total: int = 1) -> Iterator[Advance]:
        """One step; the block calls what it gets with the amount done (1 by default)."""
        task = self._progress.add_task(title, total=total)

        def advance(amount: int = 1) -> None:
            self._progress.advance(task, amount)

        yield advance
        self._progress.update(task, completed=total)


def run_story(installation: Installation, processes: Processes, seed: int, steps: Steps) -> Story:
    """Run the whole demo; the processes keep running, and the caller ends them."""
    started = time.monotonic()
    training, calibration, held_out = split_digits(np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 1)
    _train_model(installation, training, seed, steps)
    with steps.step(
        f"Start the service with {serving_plan(installation.settings).workers} workers and the monitor"
    ):
        seconds_to_ready = _start(installation, processes)
    with Client(installation.service_url, installation.token) as api:
        _calibrate(api, installation, calibration, rng, steps)
        observer = Observer(api)
        clinic = _Clinic(installation, steps)
        development = _stream_development(clinic, observer, held_out, rng)
        shift_started_at = time.time()
        images = draw_stream(held_out, CLINIC_PREVALENCE, SHIFTED_IMAGES, rng)
        shifted = clinic.send("The mix shifts: ten harmless cases for each other", images)
        swap = _wait_for_swap(observer, len(development.answers), steps)
        initial = development.answers[0].head_version
        repeated = clinic.send(
            "Send the same images again under the new head", images.select(shifted.by_head(initial))
        )
        cycles = observer.cycles()
        # Only now, so that no figure above depends on a label.
        labelled = _send_labels(api, Answers.concatenate([development, shifted, repeated]), seed, steps)
        return Story(
            seed=seed,
            initial_version=initial,
            development=development,
            shifted=shifted,
            repeated=repeated,
            shift_started_at=shift_started_at,
            swapped_at=swap.published_at,
            affected=swap.affected,
            first_shifted_cycle=swap.first_shifted_cycle,
            swap=swap.cycle,
            labelled=labelled,
            cycles=cycles,
            heads=observer.heads(),
            seconds_to_ready=seconds_to_ready,
            seconds_in_all=time.monotonic() - started,
        )


@dataclass(frozen=True)
class _Clinic:
    """Sends images to the service from the environment of the demo."""

    installation: Installation
    steps: Steps

    def send(self, title: str, images: Stream) -> Answers:
        service_url, token = self.installation.service_url, self.installation.clinic_token
        with self.steps.step(title, len(images.labels)) as advance:
            return send(service_url, token, ENVIRONMENT, images, on_answer=advance)


@dataclass(frozen=True)
class _Swap:
    """The swap that follows the shift."""

    first_shifted_cycle: CycleSeen
    cycle: CycleSeen
    published_at: float
    """seconds since the epoch"""
    affected: AffectedSeen


def _train_model(installation: Installation, training: Split, seed: int, steps: Steps) -> None:
    with steps.step("Train a small network on degraded digits", EPOCHS) as advance:
        model = train(training, seed=seed, on_epoch=advance)
    with steps.step("Export ONNX, register task and model"):
        register(installation, export_onnx(model))


def _start(installation: Installation, processes: Processes) -> float:
    """Start service and monitor; return the seconds until the service was ready."""
    service = processes.start("serve")
    seconds = processes.wait_until_ready(service, f"{installation.service_url}/readyz")
    monitor = processes.start("monitor")
    processes.wait_until_ready(monitor, installation.monitor_url)
    return seconds


def _calibrate(
    api: Client, installation: Installation, calibration: Split, rng: np.random.Generator, steps: Steps
) -> None:
    with steps.step("Calibrate on held-out images", len(calibration.labels)) as advance:
        calibrate(api, write_calibration_images(installation.directory, calibration, rng), advance)
        time.sleep(SWAP_SECONDS)


def _stream_development(
    clinic: _Clinic, observer: Observer, held_out: Split, rng: np.random.Generator
) -> Answers:
    """Send images of the development mix, and wait for a cycle after each part."""
    parts: list[Answers] = []
    for _ in range(CYCLES_BEFORE_SHIFT):
        images = draw_stream(held_out, DEVELOPMENT_PREVALENCE, DEVELOPMENT_IMAGES, rng)
        parts.append(clinic.send("Stream images with the development mix", images))
        with clinic.steps.step("Let the monitor look: nothing should happen"):
            observer.wait_for_cycle(sum(len(part.answers) for part in parts))
    return Answers.concatenate(parts)


def _wait_for_swap(observer: Observer, images_before_shift: int, steps: Steps) -> _Swap:
    """Wait until a cycle has swapped the head and every worker serves it."""
    with steps.step("Wait for the monitor to swap the head"):
        first_shifted_cycle = observer.wait_for_cycle(images_before_shift + ENOUGH_IMAGES)
        cycle = observer.wait_for_cycle(images_before_shift + 1, swapped=True)
        published_at = observer.published_at(cycle)
        time.sleep(max(0.0, published_at + SWAP_SECONDS - time.time()))
        return _Swap(first_shifted_cycle, cycle, published_at, observer.affected_by(cycle))


def _send_labels(api: Client, answers: Answers, seed: int, steps: Steps) -> Answers:
    """Send labels of a random part of the answers, and return this part."""
    labelled = draw_labelled(answers, np.random.default_rng(seed + 2))
    with steps.step("Send late labels of a part of the predictions", len(labelled.labels)) as advance:
        send_labels(api, labelled, advance)
    return labelled
