"""The subject of a cycle: model, head, earlier heads and fitted quantifier.

They are read in an order that detects every concurrent change.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lifelong_core.deploy import FittedQuantifier, LabeledLogits, quantifier
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model, Registry, Task
from lifelong_core.store import Store
from lifelong_core.values.errors import (
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    UnavailableError,
    UnidentifiableError,
)
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


def check_method(name: str) -> None:
    """Make sure that the quantifier exists; otherwise every cycle would fail.

    Raises:
        ConfigurationError: there is no quantifier of this name.
    """
    try:
        quantifier(name)
    except InvalidInputError as error:
        raise ConfigurationError(error.message, field="LIFELONG_QUANTIFIER", hint=error.hint) from error


class FittedQuantifiers:
    """Fits a quantifier once per calibration set and method; keeps the latest of each model."""

    def __init__(self) -> None:
        self._fitted: dict[int, tuple[tuple[str, str], FittedQuantifier]] = {}

    def get(
        self, store: Store, model: Model, calibration_set_id: int, method: str
    ) -> FittedQuantifier | LabeledLogits:
        """Return the quantifier fitted on a calibration set of the model.

        Returns the calibration set itself where it cannot tell the classes apart: `adapt` refuses it with the reason.

        Raises:
            NotFoundError: the calibration set or its artifact is gone.
            InvalidInputError: the method is unknown.
        """
        key = (store.calibration_sets.get(calibration_set_id).digest, method)
        kept = self._fitted.get(model.id)
        if kept is not None and kept[0] == key:
            return kept[1]
        labelled = store.calibration_sets.load(calibration_set_id)
        try:
            fitted = quantifier(method).fit(labelled)
        except UnidentifiableError:
            return labelled
        self._fitted[model.id] = (key, fitted)
        return fitted
