"""Loads graphs of models from the artifacts: served graphs, and one graph for the trial of a route."""

import threading
from collections.abc import Callable
from dataclasses import replace

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.configuration.serving_plan import serving_plan
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.registry.records import Model, Task
from lifelong_core.values.errors import LifelongError
from lifelong_service.graphs.classifier import Classifier, load_classifier
from lifelong_service.graphs.run_limit import RunLimit
from lifelong_service.worker.hanging_models import HangingModels
from lifelong_service.worker.serving_state import ServingState


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
