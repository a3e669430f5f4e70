"""A snapshot: a consistent registry and the loaded graphs that a worker serves at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Self

from lifelong_core.entities.registry import Model, ModelLoad, Registry, Task, without_head
from lifelong_core.values.errors import ConflictError, InvalidInputError, UnavailableError
from lifelong_service.graphs.classifier import Classifier

RETRY_SECONDS = 10
"""Time after which a failed load of a graph or a head is repeated."""


@dataclass(frozen=True)
class Snapshot:
    """Registry and graphs at one moment; immutable, so that a batch sees one state.

    Attributes:
        registry: tasks, models and heads of one revision. Until a promoted model is loaded, its task keeps the
            previously served one; trials whose candidate is not loaded are left out.
        classifiers: the loaded graphs by model id.
        failures: reasons why the other graphs could not be loaded, by model id.
    """

    registry: Registry
    classifiers: Mapping[int, Classifier]
    failures: Mapping[int, str]

    @classmethod
    def next_snapshot(
        cls,
        previous: Self | None,
        registry: Registry,
        classifiers: Mapping[int, Classifier],
        failures: Mapping[int, str],
    ) -> Self:
        """Return the next snapshot: promoted models and candidates wait until they are loaded; other changes do not."""
        tasks = {
            task.id: _keeping_served(task, previous, registry, classifiers)
            for task in registry.tasks.values()
        }
        rollouts = {task: trial for task, trial in registry.rollouts.items() if trial.model_id in classifiers}
        shown = replace(registry, tasks=MappingProxyType(tasks), rollouts=MappingProxyType(rollouts))
        return cls(shown, MappingProxyType(dict(classifiers)), MappingProxyType(dict(failures)))

    def loads(self) -> dict[int, ModelLoad]:
        """Loaded and failed graphs by model id, without those that are being loaded."""
        loaded = {key: ModelLoad(graph.provider, None) for key, graph in self.classifiers.items()}
        return loaded | {key: ModelLoad(None, reason) for key, reason in self.failures.items()}

    def task(self, model: Model) -> Task:
        """The task of a model of this snapshot."""
        return self.registry.tasks[model.task_id]

    def classifier(self, model: Model) -> Classifier:
        """The loaded graph of a model.

        Raises:
            InvalidInputError: the model is external: it takes logits only.
            ConflictError: the model has no head, because it was never calibrated, or it was promoted earlier and its
                graph is released.
            UnavailableError: the graph is not loaded yet, or cannot be.
        """
        if model.kind == "external":
            raise InvalidInputError(
                f"the model {model.reference} runs elsewhere.",
                field="model",
                hint="Send its logits to /v1/logits, or name a model that takes images.",
            )
        classifier = self.classifiers.get(model.id)
        if classifier is not None:
            return classifier
        if model.id in self.registry.released:
            raise ConflictError(
                f"{model.reference} was promoted earlier, and its graph is released.",
                field="model",
                hint="Name another version, or none; to load it again: `lifelong models shadow"
                f" {model.reference}`.",
            )
        if not needs_graph(self.registry, model):
            raise without_head(model)
        if model.id in self.failures:
            raise UnavailableError(
                f"the model {model.reference} cannot be loaded: {self.failures[model.id]}",
                field="model",
                hint="Promote another version, or name one; `lifelong doctor` says more.",
                retry_after_seconds=RETRY_SECONDS,
            )
        raise UnavailableError(
            f"the model {model.reference} is being loaded.", field="model", hint="Try again."
        )

    def unserved(self) -> list[str]:
        """Return reasons why requests without a model get no answer: the only promoted model is not loaded, or no head.

        With promoted models of several tasks, requests must name a model.
        """
        promoted = [task.promoted_model_id for task in self.registry.tasks.values() if task.promoted_model_id]
        if len(promoted) != 1 or promoted[0] not in self.registry.models:
            return []
        model = self.registry.models[promoted[0]]
        if self.registry.without_head():
            return [f"the promoted model {model.reference} has no default head that can be served."]
        if model.id in self.failures:
            return [f"the promoted model {model.reference} cannot be loaded: {self.failures[model.id]}"]
        return []

    def providers(self) -> dict[str, str]:
        """The ONNX Runtime execution provider that runs each loaded model, by its reference."""
        models = self.registry.models
        return {
            models[key].reference: graph.provider for key, graph in self.classifiers.items() if key in models
        }

    def unused_gpu(self) -> list[str]:
        """Why graphs run on the CPU although CUDA is installed; empty: there is nothing to tell."""
        return sorted(
            {graph.unused_gpu for graph in self.classifiers.values() if graph.unused_gpu is not None}
        )

    def calibrated_otherwise(self) -> list[str]:
        """References of loaded models whose active calibration set was made with another preprocessing."""
        models, recorded = self.registry.models, self.registry.preprocessing_digests
        return [
            models[key].reference
            for key, graph in self.classifiers.items()
            if key in models and recorded.get(key, graph.preprocessing_digest) != graph.preprocessing_digest
        ]

    def failed(self) -> dict[str, str]:
        """Why models could not be loaded, by their references."""
        models = self.registry.models
        return {models[key].reference: why for key, why in self.failures.items() if key in models}


def needs_graph(registry: Registry, model: Model) -> bool:
    """Whether a worker loads the model: it is of kind onnx, has a head, and is not released."""
    place = (model.id, None)
    is_released = model.id in registry.released
    return model.kind == "onnx" and not is_released and (place in registry.heads or place in registry.damaged)


def _keeping_served(
    task: Task, previous: Snapshot | None, registry: Registry, classifiers: Mapping[int, Classifier]
) -> Task:
    promoted = registry.models.get(task.promoted_model_id) if task.promoted_model_id is not None else None
    if promoted is None or promoted.kind == "external" or promoted.id in classifiers or previous is None:
        return task
    before = previous.registry.tasks.get(task.id)
    if before is None or before.promoted_model_id is None or before.promoted_model_id not in classifiers:
        return task
    return replace(task, promoted_model_id=before.promoted_model_id)
