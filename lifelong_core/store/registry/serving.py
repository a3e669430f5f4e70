"""Serving state of a model: the target from the registry, the actual state from the workers' heartbeats."""

import time
from dataclasses import dataclass

from lifelong_core.entities.develop.rollouts import Rollout
from lifelong_core.entities.registry import Model, ServingWorker, Task
from lifelong_core.store.store import Store

WORKERS_PATIENCE_SECONDS = 30.0
"""Longest wait of a command for workers to load a model; a request to the service waits less."""
_STEP_SECONDS = 0.05


@dataclass(frozen=True)
class ServingState:
    """State of serving a model at one time.

    Attributes:
        model: the model.
        task: its task.
        promoted: reference of the task's promoted model; None: there is none.
        head_version: of the model's default head; None: it has none, so the model cannot answer.
        damage: damage of the default head in force; None: it is usable.
        workers: the living workers.
        ready: the living workers that have loaded the model and apply its default head.
        failures: errors of loading it, by worker (`process on host`).
        rollout: its trial that goes on; None: it is not on trial.
    """

    model: Model
    task: Task
    promoted: str | None
    head_version: int | None
    damage: str | None
    workers: tuple[str, ...]
    ready: tuple[str, ...]
    failures: dict[str, str]
    rollout: Rollout | None = None

    @property
    def is_promoted(self) -> bool:
        """Whether it is the promoted model of its task."""
        return self.promoted == self.model.reference

    @property
    def is_settled(self) -> bool:
        """Whether every living worker serves the model or has failed to load it."""
        return len(self.ready) + len(self.failures) == len(self.workers)

    def sentence(self) -> str:
        """The state in one or two sentences, for people."""
        name = self.model.reference
        if self.damage is not None:
            return f"{name} is not served: its head cannot be used: {self.damage.rstrip('.')}."
        if self.head_version is None:
            return (
                f"{name} is not served: it has no head yet. Calibrate it: `{self.model.calibration_command}`."
            )
        if self.is_promoted:
            return self._loads(f"{name} is served now: it is promoted and run by")
        stays = f"{self.promoted} stays promoted" if self.promoted else "no model is promoted"
        return (
            f"{self._loads(f'{stays}; {name} {self._use()}. It is run by')}"
            f" To promote it: `lifelong models promote {name}`."
        )

    def _use(self) -> str:
        """What the model does, while it is not promoted."""
        if self.rollout is None:
            return "answers only requests that name it"
        if self.rollout.stage == "shadow":
            return "is on trial as a shadow: it decides for the log only"
        return f"is on trial as a canary: it answers {self.rollout.share:.3g} of the requests that name no version"

    def _loads(self, state: str) -> str:
        """A sentence on the state, with its number of workers, and on the failures of other workers."""
        name, workers, ready = self.model.reference, len(self.workers), len(self.ready)
        share = f"{ready} of {workers} {'worker' if workers == 1 else 'workers'}"
        promoted = (
            "is promoted" if self.is_promoted else f"is not promoted ({self.promoted or 'no model'} is)"
        )
        if not workers:
            return f"{name} {promoted}; no worker is running: start one with `lifelong serve`."
        if self.failures:
            worker, reason = next(iter(self.failures.items()))
            return (
                f"{name} {promoted}, but {len(self.failures)} of {workers} workers cannot load it"
                f" (worker {worker}: {reason.rstrip('.')})."
            )
        if ready < workers:
            return f"{name} {promoted}; {share} run it so far: see `lifelong heads workers`."
        return f"{state} {share}."


def serving_state(store: Store, reference: str, *, patience_seconds: float = 0) -> ServingState:
    """The serving state of a model.

    Args:
        store: the store of the model.
        reference: the model.
        patience_seconds: longest wait until every living worker serves it or has failed to load it.

    Raises:
        NotFoundError: there is no such model.
        UnavailableError: the database does not answer.
    """
    end = time.monotonic() + patience_seconds
    while True:
        serving = _look(store, reference)
        if serving.head_version is None or serving.is_settled or time.monotonic() >= end:
            return serving
        time.sleep(_STEP_SECONDS)


def describe_serving(store: Store, reference: str, *, patience_seconds: float = 0) -> str:
    """The serving state of a model in words: number of workers, promoted or not, failures.

    Arguments and errors as `serving_state`.
    """
    return serving_state(store, reference, patience_seconds=patience_seconds).sentence()


def describe_default_head(store: Store, model: Model) -> str | None:
    """The calibration set of a model's default head in words; None: it has no usable default head.

    Raises:
        UnavailableError: the database does not answer.
    """
    record = store.registry().heads.get((model.id, None))
    if record is None:
        return None
    fitted_on = store.calibration_sets.of_head(record).fitted_on
    if fitted_on is None:
        return f"Default head {record.version} names no calibration set of {model.reference}; it goes on."
    if fitted_on.id == model.calibration_set_id:
        return f"Default head {record.version} was fitted on this set."
    return (
        f"Default head {record.version} was fitted on set {fitted_on.id} and goes on. To change it:"
        f" `lifelong heads rollback {model.reference}`."
    )


def _look(store: Store, reference: str) -> ServingState:
    registry = store.registry()
    model = registry.resolve_model(reference)
    task, rollout = registry.tasks[model.task_id], registry.rollouts.get(model.task_id)
    promoted = registry.models.get(task.promoted_model_id or 0)
    head = registry.heads.get((model.id, None))
    version = None if head is None else head.version
    living = [worker for worker in store.workers.list() if not worker.is_lost]
    names = {worker.id: f"{worker.process} on {worker.host}" for worker in living}
    failures = {
        names[worker.id]: load.failure
        for worker in living
        if (load := worker.models.get(model.id)) is not None and load.failure is not None
    }
    return ServingState(
        model=model,
        task=task,
        promoted=None if promoted is None else promoted.reference,
        head_version=version,
        damage=registry.damaged.get((model.id, None)),
        workers=tuple(names.values()),
        ready=tuple(names[worker.id] for worker in living if _serves(worker, model, version)),
        failures=failures,
        rollout=rollout if rollout is not None and rollout.model_id == model.id else None,
    )


def _serves(worker: ServingWorker, model: Model, version: int | None) -> bool:
    if version is None or worker.heads.get((model.id, None)) != version:
        return False
    if model.kind == "external":
        return True
    load = worker.models.get(model.id)
    return load is not None and load.failure is None
