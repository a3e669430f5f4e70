"""Result of the test "only the prevalence changed", and the disagreements that explain a rejection."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from lifelong_core.deploy.documents import canonical, parse_document, take_fields
from lifelong_core.deploy.label_shift.drift import ClassSpread, Drift, DriftDetectors
from lifelong_core.deploy.label_shift.features import FeatureMap
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

DisagreementKind: TypeAlias = Literal[
    "moved_logit",
    "scaled_logits",
    "noisy_logits",
    "unseen_class",
    "scores_moved",
    "scores_spread",
    "confidence_moved",
    "unlike_every_class",
]

MOST = 5
_NOTABLE = 2.5
"""Smallest size of a reported disagreement, in standard errors."""
_LARGEST_FACTOR = 1.2
"""Between this factor and its inverse, the reported factor of scaled logits is accurate within 5 % (on real logits)."""


@dataclass(frozen=True)
class ComponentTest:
    """One of the component tests of the p-value."""

    name: Literal["steps", "waves", "drifts"]
    statistic: float
    """steps: Hansen's J; waves: squared distance of mean features; drifts: the largest in standard errors"""
    p_value: float
    """of this component alone"""


@dataclass(frozen=True)
class Disagreement:
    """Deviation of the window from every mix of the calibration classes; an indication, not a separate test."""

    kind: DisagreementKind
    class_index: int | None
    """None: it affects all classes"""
    size: float
    """signed, in standard errors"""
    amount: float | None
    """size of the change if it is the only one: added to the logit; factor of the logits (saturates beyond 0.8 and
    1.2); share of samples far from every class; None where it has no unit or is unknown"""
    text: str
    """the disagreement as a sentence"""


@dataclass(frozen=True)
class AssumptionTest:
    """Test of "p(logits | class) is as in the calibration set" on one window."""

    statistic: float
    """standard normal quantile of 1 - `p_value`, at least 0: comparable between windows"""
    p_value: float
    """smallest p-value of a component, times their number (Bonferroni)"""
    level: float
    rejected: bool
    """p_value < level: no prevalence explains the window"""
    reliable: bool
    """False: the calibration set or the window is too small for the test to keep its level"""
    tests: tuple[ComponentTest, ...]
    disagreements: tuple[Disagreement, ...]
    """the few largest, in descending order; relevant only where the test rejects"""

    def to_document(self) -> dict[str, Any]:
        """All fields as JSON values; every number survives the round trip exactly."""
        return {
            "schema_version": 1,
            **asdict(self),
            "tests": [asdict(test) for test in self.tests],
            "disagreements": [asdict(item) for item in self.disagreements],
        }

    def to_json(self) -> str:
        """`to_document` as a string, equal for equal results."""
        return canonical(self.to_document())

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read a document of `to_document`.

        Raises:
            InvalidInputError: a field is missing or unknown.
        """
        found = take_fields(document, 1, required=tuple(item.name for item in fields(cls)))
        tests = _items(found, "tests", ComponentTest)
        disagreements = _items(found, "disagreements", Disagreement)
        found["tests"] = tuple(ComponentTest(**item) for item in tests)
        found["disagreements"] = tuple(Disagreement(**item) for item in disagreements)
        return cls(**found)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a string of `to_json`.

        Raises:
            InvalidInputError: not JSON, or a field is missing or unknown.
        """
        return cls.from_document(parse_document(text, field="assumption_test"))


def _items(
    document: Mapping[str, Any], field: str, kind: type[ComponentTest] | type[Disagreement]
) -> list[dict[str, Any]]:
    """Return the list of objects in this field, each with exactly the fields of its kind."""
    names = {item.name for item in fields(kind)}
    items = document[field]
    if not isinstance(items, list):
        raise InvalidInputError("expected a list.", field=field)
    found: list[dict[str, Any]] = []
    for item in cast("list[Any]", items):
        if not isinstance(item, Mapping) or set(cast("Mapping[str, Any]", item)) != names:
            raise InvalidInputError(f"expected objects with the fields {sorted(names)}.", field=field)
        found.append(dict(cast("Mapping[str, Any]", item)))
    return found


def worst_first(disagreements: Iterable[Disagreement]) -> tuple[Disagreement, ...]:
    """Return the few largest disagreements."""
    notable = [item for item in disagreements if abs(item.size) >= _NOTABLE]
    return tuple(sorted(notable, key=lambda item: -abs(item.size))[:MOST])


def drift_disagreements(
    detectors: DriftDetectors, sizes: Floats, errors: Floats, names: Sequence[str] | None
) -> list[Disagreement]:
    """Return disagreements for all drifts; moved or scaled logits have an amount, valid if they are the only drift.

    Args:
        detectors: detectors, with the effect of a standard step on each.
        sizes: shape (J,), deviation of each detector, in standard errors.
        errors: shape (J,), the standard errors.
        names: class names; by default the classes are numbered.
    """
    steps = np.divide(
        sizes * errors, detectors.effects, out=np.zeros_like(sizes), where=detectors.effects > 0
    )
    return [
        _drift_disagreement(drift, size, relative, names)
        for drift, size, relative in zip(detectors.drifts, sizes.tolist(), steps.tolist(), strict=True)
    ]


def _drift_disagreement(drift: Drift, size: float, steps: float, names: Sequence[str] | None) -> Disagreement:
    amount = drift.step * steps
    if drift.kind == "moved_logit":
        word = "higher" if amount > 0 else "lower"
        text = f"The logit of {_name(drift.class_index, names)} is {word} by about {_rounded(abs(amount))}."
        return Disagreement("moved_logit", drift.class_index, size, amount, text)
    if drift.kind == "scaled_logits":
        factor = float(np.exp(np.clip(amount, -20, 20)))
        # The detector saturates: a factor of 0.3 gives 0.7 at most, one of 1.5 gives 1.4.
        beyond = (
            " or less" if factor < 1 / _LARGEST_FACTOR else " or more" if factor > _LARGEST_FACTOR else ""
        )
        text = f"The logits are scaled by about {_rounded(factor)}{beyond}."
        return Disagreement("scaled_logits", None, size, factor, text)
    # No amounts for the other drifts. The effect of noise on a detector is proportional neither to its variance nor to
    # its deviation: the step of 0.5 extrapolates to up to 3.5 times as much. The effect of a sample between the classes
    # depends on its position: 10 % of such samples gave 9 to 32 %.
    if drift.kind == "noisy_logits":
        text = f"The logits are {'noisier' if amount > 0 else 'less noisy'} than in calibration."
        return Disagreement("noisy_logits", None, size, None, text)
    text = (
        "More samples lie between the classes than any mix of the classes explains: perhaps a class that is new to "
        "the model."
        if amount > 0
        else "Fewer samples lie between the classes than any mix of the classes explains."
    )
    return Disagreement("unseen_class" if amount > 0 else "confidence_moved", None, size, None, text)


def step_disagreements(
    feature_map: FeatureMap,
    spread: ClassSpread,
    means: Floats,
    prevalence: Floats,
    covariance: Floats,
    names: Sequence[str] | None,
) -> list[Disagreement]:
    """Return disagreements of each class's scores, in level or spread, with the best mix.

    Sizes are conservative: the fit of the mix absorbs a part of the random error that `covariance` includes in full.

    Args:
        feature_map: map of features to classes.
        spread: spread of the steps within the calibration classes.
        means: shape (K,), mean steps of the window.
        prevalence: shape (C,), prevalence of the best mix.
        covariance: shape (K, K), covariance of the means minus those of the mix.
        names: class names; by default the classes are numbered.
    """
    residual = means - prevalence @ spread.means
    disagreements: list[Disagreement] = []
    *scores, far = feature_map.score_columns
    for score in scores:
        columns = score.columns
        count = columns.stop - columns.start
        own, name = covariance[columns, columns], _name(score.class_index, names)
        height = _in_errors(_upwards(count), residual[columns], own)
        if score.class_index is None:
            text = f"The model is {'more' if height > 0 else 'less'} confident than any mix of the classes explains."
            disagreements.append(Disagreement("confidence_moved", None, height, None, text))
            continue
        text = f"The scores of {name} are {'higher' if height > 0 else 'lower'} than in calibration."
        disagreements.append(Disagreement("scores_moved", score.class_index, height, None, text))
        # Above the middle cut a step outwards is a step up, below it a step down.
        width = _in_errors(_outwards(count), residual[columns], own)
        text = f"The scores of {name} are {'more' if width > 0 else 'less'} extreme than in calibration."
        disagreements.append(Disagreement("scores_spread", score.class_index, width, None, text))
    return [*disagreements, *_far_from_every_class(far.columns, spread, means, covariance)]


def _far_from_every_class(
    columns: slice, spread: ClassSpread, means: Floats, covariance: Floats
) -> list[Disagreement]:
    """Return a disagreement if more samples are far from every class centre than in the most scattered class."""
    if columns.start == columns.stop:
        return []
    last = columns.stop - 1
    excess = float(means[last] - spread.means[:, last].max())
    size = excess / float(np.sqrt(covariance[last, last])) if covariance[last, last] > 0 else 0.0
    if size <= 0:
        return []
    text = f"{_per_cent(excess)} more samples are far from every class than any mix of the classes explains."
    return [Disagreement("unlike_every_class", None, size, excess, text)]


def _upwards(count: int) -> Floats:
    """Weights of equal steps at all cuts, shape (count,)."""
    return np.ones(count)


def _outwards(count: int) -> Floats:
    """Weights -1 for cuts below the middle one, 1 for cuts above, 0 for the middle, shape (count,)."""
    return np.array([np.sign(2 * index - (count - 1)) for index in range(count)], dtype=np.float64)


def _in_errors(contrast: Floats, residual: Floats, covariance: Floats) -> float:
    variance = float(contrast @ covariance @ contrast)
    return float(contrast @ residual) / float(np.sqrt(variance)) if variance > 0 else 0.0


def _per_cent(share: float) -> str:
    """Per cent without decimals, or with one below 1 %."""
    return f"{100 * share:.1f} %" if share < 0.0095 else f"{100 * share:.0f} %"


def _rounded(number: float) -> str:
    """Two significant digits, without an exponent for usual sizes."""
    return f"{float(f'{number:.2g}'):g}"


def _name(index: int | None, names: Sequence[str] | None) -> str:
    return f"class {index}" if names is None or index is None else repr(names[index])
