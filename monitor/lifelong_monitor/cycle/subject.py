"""The subject of a cycle: model, head and earlier heads, read in an order that detects every concurrent change."""

from collections.abc import Callable
from dataclasses import dataclass

from lifelong_core.entities.heads import HeadRecord
from lifelong_core.store import Store
from lifelong_core.store.registry.records import Model, Registry, Task
from lifelong_core.values.errors import ConflictError, UnavailableError
from lifelong_monitor.cycle.context import HeadService, list_head_services


@dataclass(frozen=True)
class Subject:
    """A population's model and head."""

    model: Model
    task: Task
    calibration_set_id: int
    head: HeadRecord
    sequence: int
    """newest activation in (model, environment); 0: none"""
    served: tuple[HeadService, ...]
    """the heads that served there, oldest first"""
    pinned: bool

    @property
    def classes(self) -> int:
        """Number of classes of the task."""
        return len(self.task.class_names)


def load_subject(
    store: Store, model: Model, environment: str, read_registry: Callable[[], Registry | None]
) -> Subject | str:
    """Load the subject, or return the reason why the population cannot be judged.

    Args:
        store: holds the heads.
        model: of the population.
        environment: of the population.
        read_registry: gives the present registry.
    """
    # The sequence before the head: if the head changes in between, the sequence is old and finishing fails.
    activations = store.heads.activations(model.reference, environment=environment)
    registry = read_registry()
    if registry is None or model.id not in registry.models:
        return "the model is gone"
    current = registry.models[model.id]
    if current.calibration_set_id is None:
        return "the model has no calibration set, so its prevalence cannot be estimated"
    try:
        head = registry.head_for(current, environment)
    except (ConflictError, UnavailableError) as error:
        return str(error)
    return Subject(
        model=current,
        task=registry.tasks[current.task_id],
        calibration_set_id=current.calibration_set_id,
        head=head,
        sequence=activations[-1].sequence if activations else 0,
        served=list_head_services(activations, store.heads.activations(model.reference)),
        pinned=registry.pin_for(current, environment) is not None,
    )
