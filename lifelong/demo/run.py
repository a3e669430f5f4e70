"""Tell the story: train, serve, stream, shift, wait for the swap, and compare."""

import time
from datetime import datetime
from typing import Any

import numpy as np

from lifelong.api import Api
from lifelong.demo.figures import AffectedSeen, CycleSeen, Story
from lifelong.demo.images import CLINIC_PREVALENCE, DEVELOPMENT_PREVALENCE, Stream, draw_stream, split_digits
from lifelong.demo.installation import (
    CYCLE_SECONDS,
    MODEL,
    Installation,
    calibrate,
    register,
    write_calibration_images,
)
from lifelong.demo.processes import Processes
from lifelong.demo.progress import Steps
from lifelong.demo.traffic import Answers, send
from lifelong.demo.training import EPOCHS, export_onnx, train
from lifelong_core.deploy import AdaptationPolicy, PostProcessingHead
from lifelong_core.errors import UnavailableError

ENVIRONMENT = "clinic"
DEVELOPMENT_IMAGES, SHIFTED_IMAGES = 400, 1500
ENOUGH_IMAGES = AdaptationPolicy().minimum_samples
"""of the new mix, before a cycle may judge by them alone"""
CYCLES_BEFORE_SHIFT = 2
PATIENCE_SECONDS = 6 * CYCLE_SECONDS
SWAP_SECONDS = 1.0
"""The product's promise: a published head has reached every worker after this time."""


class Observer:
    """Watches cycles and heads through the admin API, as an operator would."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def cycles(self) -> tuple[CycleSeen, ...]:
        """All cycles of the clinic, oldest first."""
        answer = self._api.get("/v1/admin/cycles", model=MODEL, environment=ENVIRONMENT, limit=100)
        seen = (CycleSeen.from_document(document) for document in answer["cycles"])
        return tuple(sorted(seen, key=lambda cycle: cycle.started_at))

    def first_cycle(self, samples: int, *, swapped: bool = False) -> CycleSeen:
        """Wait for the first cycle whose window holds so many predictions; `swapped`: that published a head, too.

        Raises:
            UnavailableError: it does not come within a minute; the message holds the reason of the last cycle.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        seen: tuple[CycleSeen, ...] = ()
        while time.monotonic() < deadline:
            seen = self.cycles()
            for cycle in seen:
                published = cycle.published_version is not None
                if cycle.window_samples >= samples and (published or not swapped):
                    return cycle
            time.sleep(0.2)
        said = seen[-1].reason if seen else "There was no cycle."
        raise UnavailableError(
            f"the monitor had not judged or swapped as expected after {PATIENCE_SECONDS:.0f} s. {said}",
            hint="See monitor.log.",
        )

    def heads(self) -> dict[int, PostProcessingHead]:
        """All heads of the demo's model by version."""
        return {item["version"]: PostProcessingHead.from_document(item["head"]) for item in self._heads()}

    def published_at(self, swap: CycleSeen) -> float:
        """When a cycle's head was published, in seconds since the epoch."""
        moments = {item["version"]: item["created_at"] for item in self._heads()}
        return datetime.fromisoformat(moments[swap.published_version]).timestamp()

    def affected_by(self, swap: CycleSeen) -> AffectedSeen:
        """How many decisions before a swap its head would make otherwise; `lifelong cycles affected` lists them."""
        answer = self._api.get(f"/v1/admin/cycles/{swap.identity}/affected", limit=1)
        return AffectedSeen.from_document(answer["figures"])

    def _heads(self) -> list[dict[str, Any]]:
        return self._api.get(f"/v1/admin/models/{MODEL}/heads")["heads"]


def tell(installation: Installation, processes: Processes, seed: int, steps: Steps) -> Story:
    """Run the whole demo; the processes are left running for whoever owns them."""
    started = time.monotonic()
    training, calibration, held_out = split_digits(np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 1)
    with steps.step("Train a small network on degraded digits", EPOCHS) as advance:
        model = train(training, seed=seed, on_epoch=advance)
    with steps.step("Export ONNX, register task and model"):
        register(installation, export_onnx(model))
    with steps.step(f"Start the service with {installation.settings.workers} workers and the monitor"):
        seconds_to_ready = start(installation, processes)

    def clinic(title: str, images: Stream) -> Answers:
        with steps.step(title, len(images.labels)) as advance:
            return send(installation.service_url, installation.token, ENVIRONMENT, images, on_answer=advance)

    with Api(installation.service_url, installation.token) as api:
        with steps.step("Calibrate on held-out images", len(calibration.labels)) as advance:
            calibrate(api, write_calibration_images(installation.directory, calibration, rng), advance)
            time.sleep(SWAP_SECONDS)
        observer = Observer(api)
        phases: list[Answers] = []
        for _ in range(CYCLES_BEFORE_SHIFT):
            images = draw_stream(held_out, DEVELOPMENT_PREVALENCE, DEVELOPMENT_IMAGES, rng)
            phases.append(clinic("Stream images with the development mix", images))
            with steps.step("Let the monitor look: nothing should happen"):
                observer.first_cycle(sum(len(phase.answers) for phase in phases))
        development = Answers.concatenate(phases)

        shift_started_at = time.time()
        images = draw_stream(held_out, CLINIC_PREVALENCE, SHIFTED_IMAGES, rng)
        shifted = clinic("The mix shifts: ten harmless cases for each other", images)
        with steps.step("Wait for the monitor to swap the head"):
            sent = len(development.answers)
            first_shifted_cycle = observer.first_cycle(sent + ENOUGH_IMAGES)
            swap = observer.first_cycle(sent + 1, swapped=True)
            swapped_at = observer.published_at(swap)
            time.sleep(max(0.0, swapped_at + SWAP_SECONDS - time.time()))
            affected = observer.affected_by(swap)
        initial = development.answers[0].head_version
        repeated = clinic(
            "Send the same images again under the new head", images.select(shifted.by_head(initial))
        )
        return Story(
            seed=seed,
            initial_version=initial,
            development=development,
            shifted=shifted,
            repeated=repeated,
            shift_started_at=shift_started_at,
            swapped_at=swapped_at,
            affected=affected,
            first_shifted_cycle=first_shifted_cycle,
            cycles=observer.cycles(),
            heads=observer.heads(),
            seconds_to_ready=seconds_to_ready,
            seconds_in_all=time.monotonic() - started,
        )


def start(installation: Installation, processes: Processes) -> float:
    """Start service and monitor; returns the seconds until the service was ready."""
    service = processes.start("serve")
    seconds = processes.wait_until_ready(service, f"{installation.service_url}/readyz")
    monitor = processes.start("monitor")
    processes.wait_until_ready(monitor, installation.monitor_url)
    return seconds
