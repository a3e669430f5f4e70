"""Labelled outputs of a model in npz files, as `recommend` and `validate` read them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lifelong.commands.cycles.inputs import name_file_in_errors


@dataclass(frozen=True)
class LabelledOutputs:
    """The arrays of one file; None for missing ones."""

    labels: Any
    probabilities: Any = None
    logits: Any = None
    decisions: Any = None
    groups: Any = None
    metadata: dict[str, Any] | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def scores(self) -> Any:
        """The probabilities, else the softmax of the logits; None without both."""
        from lifelong_core.arrays import softmax

        return self.probabilities if self.logits is None else softmax(self.logits.astype(float))


def read_outputs(path: Path) -> LabelledOutputs:
    """The labels of an npz file with its other arrays.

    Raises:
        InvalidInputError: no npz file, no labels, logits of another shape, or both logits and probabilities.
    """
    import numpy as np

    from lifelong_core.arrays import expect_logits
    from lifelong_core.deploy.labelled_set import METADATA_PREFIX
    from lifelong_core.errors import InvalidInputError
    from lifelong_core.npz import read_npz

    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}).") from error
    optional = ("probabilities", "logits", "decisions", "groups", "class_names")
    with name_file_in_errors(path, InvalidInputError):
        found: dict[str, Any] = dict(
            read_npz(content, ("labels",), optional, prefix=METADATA_PREFIX, field="npz")
        )
        if "logits" in found and "probabilities" in found:
            raise InvalidInputError(
                "it holds logits and probabilities.", field="npz", hint="Give one of them."
            )
        logits = found.get("logits")
        if logits is not None and (logits.ndim != 2 or not logits.size or logits.dtype.kind not in "biuf"):
            raise InvalidInputError(
                f"expected numbers of shape (N, C), got {logits.dtype} of shape {logits.shape}.",
                field="logits",
            )
        if logits is not None:
            expect_logits(logits.astype(np.float64))
        labels = found["labels"]
        if logits is not None and labels.ndim == 1 and len(logits) != len(labels):
            raise InvalidInputError(
                f"expected one row per label ({len(labels)}), got {len(logits)}.", field="logits"
            )
    if "class_names" in found:
        with name_file_in_errors(path, InvalidInputError):
            found["class_names"] = _names_in(found["class_names"])
    metadata = {
        name.removeprefix(METADATA_PREFIX): found.pop(name)
        for name in list(found)
        if name.startswith(METADATA_PREFIX)
    }
    return LabelledOutputs(**found, metadata=metadata or None)


def _names_in(array: Any) -> tuple[str, ...]:
    """The names in an array of texts."""
    from lifelong_core.errors import InvalidInputError

    if array.ndim != 1 or array.dtype.kind != "U" or not array.size:
        raise InvalidInputError(
            f"expected texts of shape (C,), got {array.dtype} of shape {array.shape}.",
            field="class_names",
            hint="Write it as numpy.array(['benign', 'malignant']).",
        )
    return tuple(array.tolist())
