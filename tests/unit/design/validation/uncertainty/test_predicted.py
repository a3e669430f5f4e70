"""Uncertainties, members and settings that do not fit."""

import numpy as np
import pytest

from lifelong_core.design import UncertaintySettings, validate
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import recommending, simulated

LABELS, PROBABILITIES = simulated(20, 2)
BINARY = recommending("BA", number_of_classes=2)
UNCERTAIN = np.linspace(0, 1, 20)
OTHER = PROBABILITIES[:, ::-1]


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"uncertainties": -UNCERTAIN}, "uncertainties", "got -0.05"),
        ({"uncertainties": [np.nan, *UNCERTAIN[1:]]}, "uncertainties", "got nan at index 0"),
        ({"uncertainties": UNCERTAIN[1:]}, "uncertainties", r"shape \(20,\)"),
        ({"uncertainties": [[1], [1, 2]]}, "uncertainties", "one number per sample"),
        ({"uncertainties": np.zeros(20)}, "uncertainties", "all uncertainties are 0"),
        ({"uncertainties": np.full(20, 0.3)}, "uncertainties", "all uncertainties are 0.3"),
        ({"uncertainties": UNCERTAIN, "members": [OTHER, OTHER]}, "uncertainties", "both given"),
        ({"members": [PROBABILITIES, PROBABILITIES]}, "members", "all uncertainties are 0"),
        ({"members": [PROBABILITIES]}, "members", "2 to 100 members, got 1"),
        ({"members": [PROBABILITIES, OTHER[1:]]}, "members.2", r"shape \(20, 2\)"),
        ({"members": [PROBABILITIES, OTHER[:, :1]]}, "members.2", r"shape \(20, 2\)"),
        ({"members": [PROBABILITIES, 2 * OTHER]}, "members.2", "is not a set of probabilities"),
        ({"members": [PROBABILITIES, [[1], [1, 2]]]}, "members.2", "rows of equal length"),
    ],
)
def test_each_has_its_error(given, field, said):
    with pytest.raises(InvalidInputError, match=said) as refused:
        validate(BINARY, LABELS, probabilities=PROBABILITIES, replicates=20, **given)
    assert refused.value.field == field


@pytest.mark.parametrize("kind", ["standard_deviation", "variance", "entropy"])
def test_a_stated_kind_has_a_largest_value(kind):
    settings = UncertaintySettings(kind=kind)
    given = {"probabilities": PROBABILITIES, "uncertainty_settings": settings, "replicates": 20}
    with pytest.raises(InvalidInputError, match=f"the largest {kind.replace('_', ' ')} of a probability"):
        validate(BINARY, LABELS, uncertainties=UNCERTAIN, **given)
    assert validate(BINARY, LABELS, uncertainties=UNCERTAIN / 4, **given).uncertainty_aware.kind == kind


@pytest.mark.parametrize("field", ["uncertainties", "members"])
def test_more_than_two_classes_are_refused_with_the_reason(field):
    labels, probabilities = simulated(20, 3)
    given = {"uncertainties": UNCERTAIN, "members": [probabilities, probabilities]}[field]
    with pytest.raises(InvalidInputError, match="for two classes only") as refused:
        validate(recommending("BA"), labels, probabilities=probabilities, replicates=20, **{field: given})
    assert refused.value.field == field
    assert "threshold that agrees with the decision" in refused.value.hint


def test_decisions_alone_are_not_enough():
    with pytest.raises(InvalidInputError, match="need the probabilities") as refused:
        validate(BINARY, LABELS, decisions=LABELS, uncertainties=UNCERTAIN, replicates=20)
    assert refused.value.field == "probabilities"


def test_members_of_invalid_outputs_may_be_anything():
    broken = PROBABILITIES.copy()
    broken[0] = np.nan
    decisions = LABELS.copy()
    decisions[0] = -1
    found = validate(BINARY, LABELS, decisions=decisions, members=[broken, OTHER], replicates=20)
    assert found.uncertainty_aware.members == 2
    with pytest.raises(InvalidInputError, match="one per label"):
        validate(BINARY, LABELS, decisions=decisions[1:], members=[broken, OTHER], replicates=20)


LEGAL = {
    "sigmas": [[0], list(range(10)), [*np.linspace(0, 1, 50)], [1e-300, 10]],
    "dampings": [[0], [*range(6)], [1e6]],
    "threshold": [1e-9, 0.999],
}
ILLEGAL = {
    "sigmas": [[], [-1], [0, 0], [1, 0], [*np.linspace(0, 1, 51)], [10.1], [np.nan], [np.inf], "0.1"],
    "dampings": [[], [-1], [1, 1], [*range(7)], [1.1e6], [np.inf]],
    "threshold": [0, 1, -1, np.nan],
    "kind": ["spread"],
    "colour": ["red"],
}


@pytest.mark.parametrize("name", LEGAL)
def test_settings_just_inside_the_limits(name):
    for value in LEGAL[name]:
        settings = UncertaintySettings.from_document({name: value})
        found = validate(
            BINARY,
            LABELS,
            probabilities=PROBABILITIES,
            uncertainties=UNCERTAIN,
            uncertainty_settings=settings,
            replicates=10,
        )
        assert found.uncertainty_aware.sigmas == settings.sigmas


@pytest.mark.parametrize("name", ILLEGAL)
def test_settings_just_outside_the_limits(name):
    for value in ILLEGAL[name]:
        with pytest.raises(InvalidInputError) as refused:
            UncertaintySettings.from_document({name: value})
        assert (refused.value.field or "").startswith(name)
