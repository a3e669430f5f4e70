"""Models of kind onnx for the tests of trials; nothing loads their graphs."""

from lifelong_core.store import Model, Store, register_calibration
from lifelong_core.values.preprocessing import Preprocessing
from tests.unit.store.samples import CLASSES, COSTS, calibration

TASK = "lesions"


def add_calibrated(store: Store, *, seed: int = 0) -> Model:
    """The next version of the model `skin`, with a calibration set of its own; the first one is promoted."""
    if not store.tasks.list():
        store.tasks.add(TASK, CLASSES, COSTS, actor="tests")
    onnx = f"graph {len(store.models.list())}".encode()
    model = store.models.add(
        TASK, "skin", kind="onnx", onnx=onnx, preprocessing=Preprocessing(), actor="tests"
    )
    register_calibration(store, model.reference, calibration(seed), actor="tests")
    return store.models.get(model.reference)


def promoted(store: Store) -> str:
    """Reference of the promoted model."""
    return store.models.get("skin").reference


def newest_audit(store: Store, action: str) -> tuple[str, dict[str, object]]:
    """Subject and details of the newest audit entry of an action."""
    entry = store.audit.list(action=action, limit=1)[0]
    return entry.subject, entry.details
