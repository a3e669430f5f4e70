"""The test split of a training as it is kept: logits, labels and names of its images."""

from collections.abc import Sequence

import numpy as np

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import LONGEST_NAME, PairedSet
from lifelong_core.develop.training.result import TrainingResult
from lifelong_core.promotion import SeenCases
from lifelong_core.store import Model, Store
from lifelong_core.store.lifecycle.privacy import without_group_keys
from lifelong_core.values.errors import InvalidInputError, NotFoundError

_IMAGE = "image"
"""Key of the test set's metadata: names of the images."""


def test_set_of(test: LabeledLogits, names: Sequence[str]) -> bytes:
    """The test split of a training, before it is compared, as a file; group keys are left out."""
    return LabelledSet(without_group_keys(test), {_IMAGE: np.array(names)}).to_bytes()


def read_test_set(content: bytes) -> tuple[LabeledLogits, tuple[str, ...]]:
    """Logits and labels of the test split, and the names of its images; the promoted model's logits are left out."""
    try:
        both = PairedSet.from_bytes(content)
    except InvalidInputError:
        alone = LabelledSet.from_bytes(content)
        return alone.labelled, tuple(str(name) for name in alone.metadata[_IMAGE])
    return both.new.labelled, () if both.names is None else tuple(both.names.tolist())


def seen_cases(store: Store, model: Model, names: Sequence[str], *, data: str | None) -> SeenCases | None:
    """The test images of another training that a model was, or may have been, trained or calibrated on.

    The splits of two trainings differ where seed, shares or images do: only the own test split of a model was surely
    held out of its training.

    Args:
        store: of the model.
        model: that may have seen the images.
        names: of the test images.
        data: digest of the data that they were split from; None: not known.

    Returns:
        None: all are of its own test split, or it was not trained here.
    """
    try:
        training = store.trainings.get(model.reference)
        result = TrainingResult.from_json(store.artifacts.get(training.result))
        _, own = read_test_set(store.artifacts.get(training.test_set))
    except (NotFoundError, InvalidInputError):
        return None
    held_out = {name[-LONGEST_NAME:] for name in own}
    count = sum(name[-LONGEST_NAME:] not in held_out for name in names)
    return SeenCases(count=count, is_certain=result.data == data) if count else None
