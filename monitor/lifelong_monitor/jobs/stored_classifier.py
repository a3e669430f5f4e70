"""The stored graph of a model, ready to run in a job."""

from typing import Any, TypeAlias

from lifelong_core.store import Model, Store
from lifelong_core.values.errors import InvalidInputError
from lifelong_monitor.jobs.images import develop_module

OnnxClassifier: TypeAlias = Any
"""`lifelong_core.develop.training.export.onnx_classifier.OnnxClassifier`"""


def stored_classifier(store: Store, model: Model) -> OnnxClassifier:
    """The stored graph of a model with its stored preprocessing.

    Raises:
        InvalidInputError: ONNX Runtime cannot load it.
    """
    graph = store.artifacts.get(model.artifact or "")
    try:
        return develop_module("training.export.onnx_classifier").OnnxClassifier(graph, model.preprocessing)
    except Exception as error:  # ONNX Runtime raises errors of many kinds
        raise InvalidInputError(
            f"the stored graph of {model.reference} cannot be loaded ({type(error).__name__}).", field="model"
        ) from error
