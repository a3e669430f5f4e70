"""Fitted quantifiers, kept between cycles."""

from lifelong_core.deploy import FittedQuantifier, LabeledLogits, quantifier
from lifelong_core.store import Store
from lifelong_core.store.registry.records import Model
from lifelong_core.values.errors import ConfigurationError, InvalidInputError, UnidentifiableError


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
