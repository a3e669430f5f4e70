import pytest
from pydantic import ValidationError

from lifelong_core.design import ValidationResult, validate
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import recommending, simulated

LABELS, PROBABILITIES = simulated(60, 3)


@pytest.fixture(scope="module")
def result():
    recommendation = recommending("BA", "AUROC", target_prevalences=(0.5, 0.3, 0.2))
    return validate(
        recommendation, LABELS, probabilities=PROBABILITIES, metadata={"site": LABELS % 2}, replicates=20
    )


def test_it_is_a_document(result):
    assert ValidationResult.from_json(result.to_json()) == result
    assert ValidationResult.from_document(result.to_document()).to_json() == result.to_json()
    assert "NaN" not in result.to_json()


def test_it_never_changes(result):
    with pytest.raises(ValidationError):
        result.samples = 3


@pytest.mark.parametrize(
    "damage", [{"schema_version": 4}, {"schema_version": 2}, {"samples": None}, {"unknown": 1}]
)
def test_another_form_is_refused(result, damage):
    with pytest.raises(InvalidInputError):
        ValidationResult.from_document({**result.to_document(), **damage})


def test_values_are_found_by_label_and_class(result):
    assert result.labels == ("BA", "AUROC")
    assert result.value("AUROC").class_index is None
    assert result.value("AUROC", 2).class_index == 2
    assert result.estimate("AUROC", 2) == result.value("AUROC", 2).estimate


@pytest.mark.parametrize(("label", "class_index", "field"), [("AP", None, "label"), ("BA", 1, "class_index")])
def test_a_value_that_is_not_there_is_named(result, label, class_index, field):
    with pytest.raises(InvalidInputError) as error:
        result.value(label, class_index)
    assert error.value.field == field
    assert "BA, AUROC" in error.value.hint
