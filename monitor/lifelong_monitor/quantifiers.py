"""Fitted quantifiers, kept between cycles."""

from lifelong_core.deploy import FittedQuantifier, quantifier
from lifelong_core.store import Store
from lifelong_core.store.records import Model


class FittedQuantifiers:
    """Fits a quantifier once per calibration set and method; keeps the latest of each model."""

    def __init__(self) -> None:
        self._fitted: dict[int, tuple[tuple[str, str], FittedQuantifier]] = {}

    def get(self, store: Store, model: Model, calibration_set_id: int, method: str) -> FittedQuantifier:
        """The quantifier fitted on that calibration set of the model.

        Raises:
            NotFoundError: the calibration set or its artifact is gone.
            InvalidInputError: the method is unknown, or cannot be fitted on that set.
        """
        key = (store.calibration_sets.get(calibration_set_id).digest, method)
        kept = self._fitted.get(model.id)
        if kept is not None and kept[0] == key:
            return kept[1]
        fitted = quantifier(method).fit(store.calibration_sets.load(calibration_set_id))
        self._fitted[model.id] = (key, fitted)
        return fitted
