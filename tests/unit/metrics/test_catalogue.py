import math

import numpy as np
import pytest

import lifelong_core.metrics as package
from lifelong_core.metrics import METRICS, compute_metrics
from lifelong_core.metrics.catalogue import RELATIONS, metric_info
from lifelong_core.values.errors import InvalidInputError


def test_cards_are_complete():
    for card in METRICS.values():
        assert card.meaning.endswith("."), card.acronym
        assert card.undefined, card.acronym
        assert card.definition, card.acronym
        assert card.formula, card.acronym
        assert card.bounds[0] < card.bounds[1], card.acronym
        assert getattr(package, card.function.__name__) is card.function
        assert f"({card.acronym}" in card.function.__doc__ or "thesis" in card.function.__doc__, card.acronym


def test_numbers_of_ranges_are_those_that_are_shown():
    shown = {"[0,1]": (0, 1), "[-1,1]": (-1, 1), "[0,2]": (0, 2), "[0,inf]": (0, math.inf)}
    for card in METRICS.values():
        assert card.bounds == shown.get(card.range, card.bounds)


def test_the_worst_value_is_that_of_an_invalid_output():
    numbers = {
        card.acronym: card
        for card in METRICS.values()
        if card.value_for_invalid_output in ("-1", "0", "1", "2")
    }
    assert len(numbers) > 20
    for card in numbers.values():
        assert card.worst == float(card.value_for_invalid_output), card.acronym
    assert METRICS["RBS"].worst == math.sqrt(2)
    unbounded = {card.acronym for card in METRICS.values() if card.is_in_pool and not card.is_bounded}
    assert unbounded == {"EC", "NEC", "WCK", "LR-", "NB", "BSS", "NLL", "KCE", "ECCL"}


def test_those_with_other_inputs_are_functions_only():
    others = [card for card in METRICS.values() if not card.is_in_pool]
    assert len(others) == 16
    for card in others:
        with pytest.raises(InvalidInputError, match=card.function.__name__):
            metric_info(card.acronym)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("balanced accuracy", "BA"),
        ("balanced_accuracy", "BA"),
        ("Sensitivity", "TPR"),
        ("recall", "TPR"),
        ("F1", "F_beta"),
        ("NB@0.1", "NB"),
        ("ECE@10", "ECE"),
        ("bss", "BSS"),
        ("Youden", "J"),
        ("AUC", "AUROC"),
    ],
)
def test_a_wrong_name_gets_a_suggestion(name, meant):
    with pytest.raises(InvalidInputError, match=rf"Did you mean {meant}\?") as caught:
        compute_metrics([name], confusion_matrix=[[1, 0], [0, 1]])
    assert caught.value.field == "names"


@pytest.mark.parametrize("name", ["xyzzy", "", None, 3])
def test_a_name_like_no_other_gets_the_list(name):
    with pytest.raises(InvalidInputError, match="Metrics: AC, ER, BA"):
        metric_info(name)


def test_relations_are_between_metrics_and_each_is_on_both_cards():
    assert len({frozenset((one.first, one.second)) for one in RELATIONS}) == len(RELATIONS)
    for one in RELATIONS:
        for acronym in (one.first, one.second):
            assert one in METRICS[acronym].relations
            assert one.other(acronym) in METRICS
            assert one.other(acronym) != acronym


def test_relations_of_the_table_of_the_thesis_are_all_there():
    """Table 4.2 above the diagonal; F1 is F_beta there and here."""
    table = {
        "AC": "BA ER MCC PPV TPR",
        "BA": "J TPR WCK",
        "CK": "WCK",
        "EC": "ER TPR",
        "F_beta": "PPV TPR JAC",
        "J": "MCC MK TNR TPR",
        "LR+": "TNR TPR",
        "MCC": "MK",
        "MK": "NPV PPV",
        "NB": "TNR TPR",
        "NPV": "TNR",
        "PPV": "TPR",
    }
    ours = {frozenset((one.first, one.second)) for one in RELATIONS}
    assert {frozenset((first, second)) for first, row in table.items() for second in row.split()} <= ours


BINARY = [[8, 2], [3, 17]]
BALANCED = [[8, 2], [3, 7]]


def _values(confusion, **parameters):
    names = [acronym for acronym, card in METRICS.items() if card.family == "counting"]
    found = compute_metrics(names, confusion_matrix=confusion, **parameters)
    return {name.replace("+", "p").replace("-", "m"): value for name, value in found.items()}


def test_balanced_tasks_cannot_tell_some_metrics_apart():
    of = _values(BALANCED)
    assert of["AC"] == pytest.approx(of["BA"])
    assert of["WCK"] == pytest.approx(2 * of["BA"] - 1)
    assert of["CK"] == pytest.approx(of["WCK"])


def test_special_cases_are_special_cases():
    plain, prevalence = _values(BINARY), np.array([10, 20]) / 30
    assert plain["EC"] == pytest.approx(plain["ER"])
    assert plain["CK"] == pytest.approx(plain["WCK"])
    weighted = _values(BINARY, costs=(1 - np.eye(2)) / (2 * prevalence)[:, np.newaxis])
    assert weighted["EC"] == pytest.approx(1 - plain["BA"])
    threshold = 0.2
    of_class_0 = _values(BINARY, costs=[[0, 1], [threshold / (1 - threshold), 0]], threshold=threshold)
    assert of_class_0["NB"][0] == pytest.approx(prevalence[0] - of_class_0["EC"])


def test_ingredients_are_ingredients():
    of, prevalence, bias = _values(BINARY), np.array([10, 20]) / 30, np.array([11, 19]) / 30
    assert of["AC"] == pytest.approx(prevalence @ of["TPR"])
    assert of["AC"] == pytest.approx(bias @ of["PPV"])
    assert of["BA"] == pytest.approx(of["TPR"].mean())
    assert of["J"] == pytest.approx(of["TPR"] + of["TNR"] - 1)
    assert of["MK"] == pytest.approx(of["PPV"] + of["NPV"] - 1)
    assert of["LRp"] == pytest.approx(of["TPR"] / (1 - of["TNR"]))
    assert of["LRm"] == pytest.approx((1 - of["TPR"]) / of["TNR"])
    assert abs(of["MCC"]) == pytest.approx(math.sqrt(of["J"][0] * of["MK"][0]))
    dual = _values(np.transpose(BINARY))
    for reference, decided in (("TPR", "PPV"), ("TNR", "NPV"), ("J", "MK")):
        assert dual[reference] == pytest.approx(of[decided])
