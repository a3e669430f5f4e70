"""Facts of registered models for promotion reports: the stored graph, its size and time, and the training data."""

from dataclasses import dataclass
from io import BytesIO
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.fingerprints.distances.registry import METHODS, default_method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes
from lifelong_core.develop.training.result import TrainingResult
from lifelong_core.images import model_input
from lifelong_core.promotion.document import FingerprintDistance, RuntimeCost
from lifelong_core.promotion.runtime_cost import measure_cost
from lifelong_core.store import Model, Store
from lifelong_core.values.errors import InvalidInputError, LifelongError, NotFoundError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_monitor.jobs.kinds.images import develop_module

_EDGE = 256
"""Pixels of the grey image that times are measured on; the preprocessing makes the model's own size of it."""

OnnxClassifier: TypeAlias = Any
"""`lifelong_core.develop.training.export.onnx_classifier.OnnxClassifier`"""


def trained_on(store: Store, model: Model) -> str | None:
    """Digest of the data that a model was trained on; None: not known."""
    try:
        result = store.trainings.get(model.reference).result
        return TrainingResult.from_json(store.artifacts.get(result)).data
    except (NotFoundError, InvalidInputError):
        return None


def cost_on_grey(store: Store, model: Model) -> RuntimeCost | None:
    """Size of a stored graph, and its time for a grey image; None: the model runs elsewhere.

    The time is missing where the graph takes images of another size than the preprocessing gives.
    """
    if model.artifact is None or model.preprocessing is None:
        return None
    graph = store.artifacts.get(model.artifact)
    try:
        classifier, pixels = stored_classifier(store, model), _grey(model.preprocessing)
        return measure_cost(graph, classifier.logits, pixels, clock=perf_counter)
    except Exception:  # noqa: BLE001  ONNX Runtime raises errors of many kinds, and the size stays known
        return measure_cost(graph, None, None, clock=perf_counter)


def data_distance(store: Store, new: Model, current: Model) -> FingerprintDistance | None:
    """Distance of the training data of two models by their fingerprints; None: neither was trained here."""
    ours, theirs = (_data_of(store, model) for model in (new, current))
    if ours is None and theirs is None:
        return None
    if ours is None or theirs is None:
        unknown = current if theirs is None else new
        return FingerprintDistance(
            method="none", distance=None, reason=f"{unknown.reference} was not trained here."
        )
    if ours.digest == theirs.digest:
        return FingerprintDistance(method="equal images, labels and groups", distance=0.0)
    if ours.fingerprint is None or theirs.fingerprint is None:
        missing = current if theirs.fingerprint is None else new
        return FingerprintDistance(
            method="none",
            distance=None,
            reason=f"the fingerprint of the data of {missing.reference} is not kept: none was made, or a newer one took"
            " its place.",
        )
    method = default_method(ours.fingerprint)
    name = next((name for name, known in METHODS.items() if known == method), ours.fingerprint.kind)
    try:
        found = method.distance(theirs.fingerprint, ours.fingerprint)
    except InvalidInputError as error:
        return FingerprintDistance(method=name, distance=None, reason=error.message)
    return FingerprintDistance(method=name, distance=found)


@dataclass(frozen=True)
class _Data:
    """Training data of a model."""

    digest: str
    fingerprint: Fingerprint | None
    """None: it was not made, or is not kept"""


def _data_of(store: Store, model: Model) -> _Data | None:
    digest = trained_on(store, model)
    return None if digest is None else _Data(digest, _fingerprint_of(store, model))


def _fingerprint_of(store: Store, model: Model) -> Fingerprint | None:
    """The fingerprint that the job of the training made, as long as both are kept."""
    try:
        job = store.jobs.get(store.trainings.get(model.reference).job_id)
        made = (job.result or {}).get("fingerprint")
        record = next(one for one in store.knowledge.fingerprint_records() if one.digest == made)
        return fingerprint_from_bytes(store.artifacts.get(record.artifact))
    except (LifelongError, StopIteration):
        return None


def _grey(preprocessing: Preprocessing) -> NDArray[np.float32]:
    """Input of a model for a grey image, shape (1, ...)."""
    from PIL import Image

    file = BytesIO()
    Image.new("RGB", (_EDGE, _EDGE), (128, 128, 128)).save(file, "PNG")
    return model_input(file.getvalue(), preprocessing, maximum_pixels=10**8)[np.newaxis]


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
