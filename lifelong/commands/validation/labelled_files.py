"""Labelled outputs of models in npz files, as `recommend` and `validate` read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from lifelong.commands.cycles.inputs import name_file_in_errors
from lifelong.commands.validation.option_values import file_by_model, files_by_model
from lifelong.commands.validation.uncertainty_files import (
    as_probabilities_of,
    read_member,
    read_uncertainties,
)
from lifelong_core.deploy.labelled_set import MEMBER_NAMES, METADATA_PREFIX, take_members
from lifelong_core.design import ModelOutputs
from lifelong_core.values.arrays import read_labels, softmax, with_both_columns
from lifelong_core.values.class_labels import composed
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.mistaken_probabilities import expect_logits
from lifelong_core.values.npz import read_npz


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
    uncertainties: Any = None
    members: tuple[Any, ...] | None = None
    """probabilities (N, C) of each member"""

    @property
    def scores(self) -> Any:
        """The probabilities, else the softmax of the logits, else the mean of the members; None without all."""
        if self.logits is not None:
            return softmax(self.logits.astype(float))
        if self.probabilities is None and self.members:
            return sum(self.members) / len(self.members)
        return self.probabilities


def with_indices(data: LabelledOutputs, class_names: Sequence[str] | None) -> LabelledOutputs:
    """The same outputs, with labels as indices of these classes, see `read_labels`.

    Raises:
        InvalidInputError: a label is no class.
    """
    return replace(data, labels=read_labels(data.labels, class_names))


def read_outputs(path: Path) -> LabelledOutputs:
    """The labels of an npz file, as they are, with its other arrays.

    Raises:
        InvalidInputError: no npz file, no labels, logits of another shape, or both logits and probabilities.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}).") from error
    optional = (
        "probabilities",
        "logits",
        "decisions",
        "groups",
        "class_names",
        "uncertainties",
        *MEMBER_NAMES,
    )
    with name_file_in_errors(path, InvalidInputError):
        found: dict[str, Any] = dict(
            read_npz(content, ("labels",), optional, prefix=METADATA_PREFIX, field="npz")
        )
        if "logits" in found and "probabilities" in found:
            raise InvalidInputError(
                "it holds logits and probabilities.", field="npz", hint="Give one of them."
            )
        logits = found.get("logits")
        if logits is not None:
            logits = found["logits"] = with_both_columns(logits)
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
        members = [
            as_probabilities_of(logits, f"logits_{place}")
            for place, logits in enumerate(take_members(found), start=1)
        ]
    found = {name: array for name, array in found.items() if name not in MEMBER_NAMES}
    if "class_names" in found:
        with name_file_in_errors(path, InvalidInputError):
            found["class_names"] = _names_in(found["class_names"])
    metadata = {
        name.removeprefix(METADATA_PREFIX): found.pop(name)
        for name in list(found)
        if name.startswith(METADATA_PREFIX)
    }
    return LabelledOutputs(**found, metadata=metadata or None, members=tuple(members) or None)


def model_outputs(
    read: dict[str, LabelledOutputs], names: Sequence[str] | None, options: Mapping[str, Any]
) -> dict[str, ModelOutputs]:
    """The outputs of each model with those of --cut-offs, --uncertainties and --members.

    Args:
        read: the labelled data of each model.
        names: of the classes.
        options: of the command `validate`.

    Raises:
        InvalidInputError: models have other samples, uncertainties were given twice, or a file cannot be read.
        click.UsageError: an option names no model.
    """
    _check_same_samples(read)
    read = _with_uncertainties(read, options)
    cut_offs = file_by_model(list(read), options["cut_offs"], "--cut-offs")
    others = {name: with_indices(read_outputs(path), names) for name, path in cut_offs.items()}
    score_prevalence = _shares(options["score_prevalence"])
    return {
        name: ModelOutputs(
            probabilities=data.probabilities,
            logits=data.logits,
            decisions=data.decisions,
            cut_off_data=(others[name].labels, others[name].scores) if name in others else None,
            score_prevalence=score_prevalence,
            uncertainties=data.uncertainties,
            members=data.members,
        )
        for name, data in read.items()
    }


def _check_same_samples(read: dict[str, LabelledOutputs]) -> None:
    """Check that all models have the same samples in the same order."""
    first = next(iter(read.values()))
    for name, data in read.items():
        if not np.array_equal(data.labels, first.labels):
            raise InvalidInputError(
                f"the labels of {name} are others than those of {next(iter(read))}.",
                field="DATA",
                hint="Give the outputs of all models on the same samples, in the same order.",
            )


def _with_uncertainties(
    read: dict[str, LabelledOutputs], options: Mapping[str, Any]
) -> dict[str, LabelledOutputs]:
    """The data with the uncertainties and members of further files."""
    changed = dict(read)
    given = file_by_model(list(read), options["uncertainties"], "--uncertainties")
    drawn = files_by_model(list(read), options["members"], "--members")
    for name in dict.fromkeys((*given, *drawn)):
        data = read[name]
        sources = (name in given, name in drawn, data.uncertainties is not None, data.members is not None)
        if sum(sources) > 1:
            raise InvalidInputError(
                f"the uncertainties of {name} were given more than once.",
                field="uncertainties",
                hint="Give one of --uncertainties, --members, and arrays of the labelled data.",
            )
        if name in given:
            changed[name] = replace(data, uncertainties=read_uncertainties(given[name]))
        else:
            members = tuple(read_member(path) for path in drawn[name])
            changed[name] = replace(data, members=members)
    return changed


def _shares(text: str | None) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise click.UsageError(
            f"--score-prevalence takes numbers separated by commas, such as 0.9,0.1; got {text[:80]!r}."
        ) from error


def _names_in(array: Any) -> tuple[str, ...]:
    """The names in an array of texts."""
    if array.ndim != 1 or array.dtype.kind != "U" or not array.size:
        raise InvalidInputError(
            f"expected texts of shape (C,), got {array.dtype} of shape {array.shape}.",
            field="class_names",
            hint="Write it as numpy.array(['benign', 'malignant']).",
        )
    return tuple(composed(name) for name in array.tolist())
