"""What a new snapshot changes, as metrics and in the log of the worker."""

import logging

from lifelong_core.entities.registry import Registry
from lifelong_core.values.errors import ConflictError, UnavailableError
from lifelong_service import metrics
from lifelong_service.prediction.snapshot import Snapshot
from lifelong_service.worker.serving_state import describe_damage

logger = logging.getLogger(__name__)


def report_changes(previous: Snapshot | None, snapshot: Snapshot) -> None:
    """Set the metrics of a snapshot, and log what differs from the previous one: heads, damage, preprocessing."""
    registry = snapshot.registry
    swapped = _swapped_heads(previous, registry)
    if swapped:
        metrics.HEAD_SWAPS_SEEN.inc(len(swapped))
        logger.info("took over heads", extra={"details": {"heads": swapped, "revision": registry.revision}})
    metrics.DAMAGED_HEADS.set(len(registry.damaged))
    metrics.MODELS_WITHOUT_HEAD.set(len(registry.without_head()))
    metrics.FAILED_MODELS.set(len(snapshot.failures))
    _count_providers(previous, snapshot)
    _compare_preprocessing(previous, snapshot)
    known = set(describe_damage(previous.registry)) if previous is not None else set[str]()
    for damage in describe_damage(registry):
        if damage not in known:
            logger.error("a head cannot be served", extra={"details": {"reason": damage}})


def _count_providers(previous: Snapshot | None, snapshot: Snapshot) -> None:
    """Set the metrics of execution providers: 1 per loaded graph, 0 for graphs that were dropped; unused CUDA."""
    metrics.UNUSED_GPU.set(bool(snapshot.unused_gpu()))
    before = {} if previous is None else previous.providers()
    for model, provider in before.items() - snapshot.providers().items():
        metrics.EXECUTION_PROVIDER.labels(model, provider).set(0)
    for model, provider in snapshot.providers().items():
        metrics.EXECUTION_PROVIDER.labels(model, provider).set(1)


def _compare_preprocessing(previous: Snapshot | None, snapshot: Snapshot) -> None:
    """Report models whose active calibration set was made with another preprocessing: in the log once, as a metric."""
    models = snapshot.calibrated_otherwise()
    metrics.OTHER_PREPROCESSING.set(len(models))
    known = () if previous is None else previous.calibrated_otherwise()
    for model in models:
        if model not in known:
            logger.warning(
                "the calibration set of a model was made with another preprocessing",
                extra={"details": {"model": model}},
            )


def _swapped_heads(previous: Snapshot | None, registry: Registry) -> list[str]:
    """Return the places with a new head version, as `model@version environment: old -> new`.

    Places are the model's default head (`*`) and each environment that has or had its own head: the first own head of
    an environment and its return to the default head are changes, the first head of a model is not.
    """
    if previous is None:
        return []
    places = sorted(
        previous.registry.heads.keys() | registry.heads.keys(), key=lambda place: (place[0], place[1] or "")
    )
    swapped: list[str] = []
    for model_id, environment in places:
        before = _answering(previous.registry, model_id, environment)
        now = _answering(registry, model_id, environment)
        if before is not None and now is not None and before != now:
            reference = registry.models[model_id].reference
            swapped.append(f"{reference} {environment or '*'}: {before} -> {now}")
    return swapped


def _answering(registry: Registry, model_id: int, environment: str | None) -> int | None:
    """Return the version of the head in force at a place; None before the first calibration."""
    model = registry.models.get(model_id)
    if model is None:
        return None
    try:
        return registry.head_for(model, environment).version
    except (ConflictError, UnavailableError):
        return None
