"""Loads graphs of models from the artifacts: served graphs, and one graph for the trial of a route.

Models that hang the workers of this host too often are not loaded; a file that outlives the workers counts the hangs.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeAlias

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.configuration.serving_plan import serving_plan
from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store import Store
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.values.errors import LifelongError, UnavailableError
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.graphs.limits import RunLimit
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.worker.serving_state import ServingState

REMEMBERED: Final = timedelta(days=1)
"""Time that a hang counts."""
Load: TypeAlias = Callable[[Model, Task], Classifier]
_Load: TypeAlias = "tuple[Future[Classifier], Model, Task]"
logger = logging.getLogger(__name__)


class HangingModels:
    """Models that hung too often are not served: each hang costs a worker.

    Args:
        path: of the file, which all workers of this host share. Without it, every model is served again.
        maximum: number of hangs within a day after which a model is not served.
    """

    def __init__(self, path: Path, *, maximum: int) -> None:
        self._path = path
        self._maximum = maximum

    def note(self, model: str) -> None:
        """Count a hang. An error of the file is logged only: the process is about to end."""
        logger.error("a model hangs", extra={"details": {"model": model}})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC).isoformat()} {model}\n")
        except OSError:
            logger.exception("a hang of a model is not counted")

    def quarantined(self) -> dict[str, str]:
        """Return the reason for each model that is not served."""
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:  # there is none yet; a file that cannot be read must not stop the other models
            return {}
        counts = Counter(model for line in lines if (model := _recent(line)) is not None)
        return {
            model: f"it has hung {count} workers within a day. Promote another version; to try this one again, remove"
            f" {self._path}."
            for model, count in counts.items()
            if count >= self._maximum
        }

    def check(self, model: str) -> None:
        """Check that a model may be served.

        Raises:
            UnavailableError: it hung too often.
        """
        if (reason := self.quarantined().get(model)) is not None:
            raise UnavailableError(reason)


def _recent(line: str) -> str | None:
    """Return the model of a line of the file, if it still counts."""
    moment, _, model = line.partition(" ")
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(moment).astimezone(UTC)
    except (ValueError, OverflowError):  # damaged
        return None
    return model if abs(age) < REMEMBERED else None  # the clock may have been set back


class ModelLoader:
    """Loads and tries graphs; threads may share it.

    Args:
        settings: execution providers, threads, use of the GPU, and the URL of the artifacts.
        serving: holds the loaded graphs.
        store: the open store; raises UnavailableError while there is none.
        run_limit: time limit of all graphs of this process.
        hanging: models that are not loaded.
    """

    def __init__(
        self,
        settings: Settings,
        serving: ServingState,
        store: Callable[[], Store],
        run_limit: RunLimit,
        hanging: HangingModels,
    ) -> None:
        self._settings = settings
        self._serving = serving
        self._store = store
        self._run_limit = run_limit
        self._hanging = hanging
        plan = serving_plan(settings)
        self._gpu = GpuUse.from_settings(settings, workers=plan.workers)
        self._threads = plan.threads
        self._artifacts: Artifacts | None = None
        self._trying = threading.Lock()
        self._tried: tuple[int, Classifier] | None = None

    @property
    def artifacts(self) -> Artifacts:
        """Graphs and calibration sets; they need no database.

        Raises:
            ConfigurationError: the URL of the artifacts is not usable.
        """
        if self._artifacts is None:
            self._artifacts = Artifacts(
                self._settings.resolved_artifacts_url,
                cache=self._settings.artifact_cache_directory.resolve(),
            )
        return self._artifacts

    def load(self, model: Model, task: Task) -> Classifier:
        """Load the graph of a model from the artifacts and run it on trial images.

        Raises:
            LifelongError: it cannot be found, loaded or used, or has hung too often.
        """
        if model.artifact is None or model.preprocessing is None:
            raise LifelongError(f"the model {model.reference} has no graph.")
        self._hanging.check(model.reference)
        loaded = load_classifier(
            self.artifacts.path(model.artifact),
            model.preprocessing,
            classes=len(task.class_names),
            providers=self._settings.execution_providers,
            threads=self._threads,
            limit=self._run_limit,
            gpu=self._gpu,
        )
        return replace(loaded, model=model.reference)

    def classifier(self, model: Model) -> Classifier:
        """Return the graph of a model, even if it is not served; the latest such graph is kept.

        Raises:
            LifelongError: as `load`, or the model is external.
        """
        snapshot = self._serving.current()
        if model.id in snapshot.classifiers or model.kind == "external":
            return snapshot.classifier(model)
        with self._trying:
            if self._tried is None or self._tried[0] != model.id:
                self._tried = None  # before the next one is loaded: graphs share the memory of a GPU
                # From the database: task and model may be newer than the snapshot.
                task = next(task for task in self._store().tasks.list() if task.id == model.task_id)
                self._tried = (model.id, self.load(model, task))
            return self._tried[1]


class GraphLoader:
    """Loads graphs in the background. Hung storage blocks neither requests nor shutdown.

    Args:
        load: loads the graph of a model.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._queue: SimpleQueue[_Load | None] = SimpleQueue()
        self._is_closed = threading.Event()
        # A daemon, unlike the threads of an executor: those are waited for at the very end of the process.
        self._thread = threading.Thread(target=self._work, name="graph-loader", daemon=True)
        self._thread.start()

    def submit(self, model: Model, task: Task) -> "Future[Classifier]":
        """Queue a graph; return the future of the loaded one."""
        future: Future[Classifier] = Future()
        self._queue.put((future, model, task))
        return future

    def close(self) -> None:
        """End the thread after the graph that it loads now."""
        self._is_closed.set()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (load := self._queue.get()) is not None and not self._is_closed.is_set():
            future, model, task = load
            try:
                future.set_result(self._load(model, task))
            except BaseException as error:  # noqa: BLE001 - raised to the caller of the future
                future.set_exception(error)
            del load, future, model, task  # frees the graph where nothing else refers to it
