"""Updates the window summaries of a population."""

import logging
from collections.abc import Callable

from lifelong_core.deploy import FittedQuantifier
from lifelong_core.store import Store
from lifelong_core.store.engine.leases import Lease
from lifelong_core.store.registry.records import Model
from lifelong_core.values.errors import ConflictError, LifelongError

log = logging.getLogger(__name__)


def update_summaries(
    store: Store,
    model: Model,
    environment: str,
    fitted: FittedQuantifier,
    *,
    lease: Lease,
    may_go_on: Callable[[], bool],
) -> bool:
    """Fold new predictions into the summaries, at least one step.

    Args:
        store: holds the log and its summaries.
        model: of the population.
        environment: of the population.
        fitted: makes the summaries.
        lease: under which they are written.
        may_go_on: asked between two steps.

    Returns:
        Whether it was stopped with work left. A failure that we can explain is logged and no more: small windows do
        without summaries, and the next cycle tries again.
    """
    classes = fitted.calibration.classes
    try:
        while True:
            try:
                done = store.summaries.fold(model, environment, fitted, classes=classes, lease=lease)
            except ConflictError as error:
                # Rows were deleted meanwhile: the next step sees what is left. A lost lease never comes back.
                if error.field == "lease":
                    raise
            else:
                if done.is_done:
                    return False
            if not may_go_on():
                return True
    except LifelongError as error:
        log.warning("%s in %s: the summaries are not up to date. %s", model.reference, environment, error)
        return False
