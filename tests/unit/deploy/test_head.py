import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lifelong_core.deploy import PostProcessingHead, bayes_decisions, fit_affine, fit_head
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError


def make(classes=3, abstain=False, **changes):
    rng = np.random.default_rng(classes)
    values = {
        "temperature": 1.7,
        "bias": rng.normal(size=classes),
        "costs": rng.uniform(0, 5, size=(classes, classes + abstain)),
        "assumed_prevalence": rng.dirichlet(np.ones(classes)),
        "class_names": tuple(f"class {k}" for k in range(classes)),
        "provenance": {"origin": "test", "window": {"samples": 7}},
    }
    return PostProcessingHead(**{**values, **changes})


@given(
    classes=st.sampled_from([2, 3, 5, 8, 17]),
    per_class=st.booleans(),
    abstain=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_a_row_does_not_depend_on_the_rest_of_the_batch(classes, per_class, abstain, seed):
    """To the last bit: a replayed prediction must give the answer that was given in another micro-batch."""
    rng = np.random.default_rng(seed)
    head = make(classes, abstain, temperature=rng.uniform(0.5, 2, size=classes) if per_class else 1.3)
    logits = (rng.normal(size=(33, classes)) * 10 ** rng.uniform(-2, 3)).astype(np.float32)
    whole = head.apply(logits)
    for part in (slice(0, 1), slice(5, 7), slice(3, 20), slice(32, 33), rng.permutation(33)):
        some = head.apply(logits[part])
        assert some.probabilities.tobytes() == whole.probabilities[part].tobytes()
        assert some.expected_costs.tobytes() == whole.expected_costs[part].tobytes()
        assert some.decisions.tolist() == whole.decisions[part].tolist()


@pytest.mark.parametrize("abstain", [False, True])
def test_applies_scaling_softmax_and_rule(abstain):
    head = make(4, abstain)
    logits = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    output = head.apply(logits)
    scores = np.exp(logits.astype(float) / head.temperature + head.bias)
    probabilities = scores / scores.sum(axis=1, keepdims=True)
    assert output.probabilities == pytest.approx(probabilities, abs=1e-13)
    assert output.expected_costs == pytest.approx(probabilities @ head.costs, abs=1e-12)
    assert output.decisions.tolist() == bayes_decisions(probabilities, head.costs).tolist()


def test_takes_logits_as_they_are_logged():
    head = make()
    logits = np.random.default_rng(0).normal(size=(5, 3))
    assert head.apply(logits) == head.apply(logits.astype(np.float32))


def test_extreme_logits_give_probabilities():
    output = make().apply([[1e4, 0, -1e4], [3e38, -3e38, 0]])
    assert output.probabilities.sum(axis=1) == pytest.approx(1)
    assert np.isfinite(output.expected_costs).all()


def test_an_empty_batch_is_answered_with_an_empty_one():
    output = make(3, abstain=True).apply(np.empty((0, 3)))
    assert (output.probabilities.shape, output.decisions.shape, output.expected_costs.shape) == (
        (0, 3),
        (0,),
        (0, 4),
    )


@pytest.mark.parametrize("head", [make(), make(2, abstain=True), make(3, temperature=[0.1, 1 / 3, 2e-9])])
def test_survives_json_exactly(head):
    again = PostProcessingHead.from_json(head.to_json())
    assert again == head
    assert again.digest == head.digest
    assert again.to_json() == head.to_json()
    assert json.loads(head.to_json())["schema_version"] == 1


def test_the_digest_covers_all_that_is_computed_and_nothing_else():
    head = make()
    changes = {
        "temperature": 1.8,
        "bias": head.bias + 1e-9,
        "costs": head.costs * 2,
        "assumed_prevalence": [0.2, 0.3, 0.5],
        "class_names": ("a", "b", "c"),
    }
    digests = {replace(head, **{name: value}).digest for name, value in changes.items()}
    assert len(digests | {head.digest}) == 6
    assert replace(head, provenance={"other": 1}).digest == head.digest
    assert replace(head, provenance={"other": 1}) != head


def test_minus_zero_computes_the_same_and_has_the_same_digest():
    assert make(bias=[0.0, 1.0, -1.0]).digest == make(bias=[-0.0, 1.0, -1.0]).digest


def test_is_frozen_through_and_through():
    head = make()
    with pytest.raises(ValueError, match="read-only"):
        head.costs[0, 0] = 9
    with pytest.raises(TypeError):
        head.provenance["origin"] = "elsewhere"
    with pytest.raises(ValueError, match="read-only"):
        head.apply([[0, 0, 0]]).probabilities[0, 0] = 1


def test_equal_heads_hash_alike():
    assert make() == make()
    assert hash(make()) == hash(make())


def document(**changes):
    return {**make().to_document(), **changes}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"schema_version": 3}, "schema_version"),
        ({"temperature": 0}, "temperature"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": [1.0, 1.0]}, "temperature"),
        ({"temperature": None}, "temperature"),
        ({"temperature": "1e999"}, "temperature"),
        ({"bias": [0.0, 1.0]}, "bias"),
        ({"bias": [0.0, 1.0, "x"]}, "bias"),
        ({"bias": [0.0, 1.0, float("nan")]}, "bias"),
        ({"costs": [[0, 1], [1, 0]]}, "costs"),
        ({"costs": [[0, 1, 1], [1, 0, float("inf")], [1, 1, 0]]}, "costs"),
        ({"assumed_prevalence": [0.5, 0.5, 0.5]}, "assumed_prevalence"),
        ({"assumed_prevalence": [0.5, 0.5]}, "assumed_prevalence"),
        ({"class_names": ["a", "b"]}, "bias"),
        ({"class_names": ["a", "b", "b"]}, "class_names"),
        ({"class_names": ["a", "b", ""]}, "class_names"),
        ({"class_names": ["a", "b", 3]}, "class_names"),
        ({"class_names": "abc"}, "class_names"),
        ({"provenance": [1]}, "provenance"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_bad_document_is_refused_by_the_name_of_the_field(changes, field):
    with pytest.raises(InvalidInputError) as caught:
        PostProcessingHead.from_document(document(**changes))
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["temperature", "bias", "costs", "assumed_prevalence", "class_names"])
def test_a_missing_field_is_named(name):
    found = document()
    del found[name]
    with pytest.raises(InvalidInputError, match="missing") as caught:
        PostProcessingHead.from_document(found)
    assert caught.value.field == name


@pytest.mark.parametrize("value", [None, [], "head"])
def test_a_document_is_an_object(value):
    with pytest.raises(InvalidInputError) as caught:
        PostProcessingHead.from_document(value)
    assert caught.value.field == "document"


def test_a_rounded_prevalence_is_normalised_once_and_for_all():
    head = make(assumed_prevalence=[0.3333333, 0.3333333, 0.3333333])
    assert head.assumed_prevalence.sum() == pytest.approx(1, abs=1e-15)
    assert PostProcessingHead.from_json(head.to_json()).digest == head.digest


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 100_000])
def test_text_that_is_no_document_is_refused(text):
    with pytest.raises(InvalidInputError) as caught:
        PostProcessingHead.from_json(text)
    assert caught.value.field == "head"


def test_logits_of_another_model_are_refused():
    with pytest.raises(InvalidInputError) as caught:
        make(3).apply([[0.0, 1.0]])
    assert caught.value.field == "logits"


def test_the_first_head_is_plain_affine_scaling(population):
    data = population(3).draw([60, 30, 10], np.random.default_rng(0))
    head = fit_head(data, 1 - np.eye(3))
    fitted = fit_affine(data.logits, data.labels)
    assert head.temperature == fitted.temperature
    assert head.bias.tolist() == fitted.bias.tolist()
    assert head.assumed_prevalence.tolist() == data.prevalence.tolist()
    assert head.class_names == ("0", "1", "2")
    assert head.provenance["calibration_digest"] == data.digest


def test_a_head_for_another_prevalence_decides_better_there(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    data = three.draw([300] * 3, rng)
    target = np.array([0.9, 0.08, 0.02])
    labels = rng.choice(3, size=4000, p=target)
    logits = three.logits(labels, rng)
    old = fit_head(data, 1 - np.eye(3)).apply(logits)
    new = fit_head(data, 1 - np.eye(3), target_prevalence=target, class_names=("a", "b", "c")).apply(logits)
    assert (new.decisions == labels).mean() > (old.decisions == labels).mean() + 0.1
    assert new.probabilities.mean(axis=0) == pytest.approx(target, abs=0.02)


def test_a_wanted_class_needs_samples(population):
    data = population(3).draw([50, 50, 0], np.random.default_rng(0))
    with pytest.raises(UnidentifiableError):
        fit_head(data, 1 - np.eye(3), target_prevalence=[0.4, 0.4, 0.2])


def zero_one(classes):
    return 1 - np.eye(classes)


@st.composite
def probabilities(draw, classes):
    weights = draw(hnp.arrays(float, (draw(st.integers(1, 5)), classes), elements=st.floats(0, 1)))
    weights[:, 0] += 1e-3
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("decisions", [3, 4])
def test_agrees_with_the_formula_term_by_term(decisions):
    """A direct transcription of thesis Def. 6.9."""
    rng = np.random.default_rng(decisions)
    rows = rng.dirichlet(np.ones(3), size=500)
    costs = rng.normal(size=(3, decisions))
    expected = [
        min(range(decisions), key=lambda k: sum(costs[j, k] * row[j] for j in range(3))) for row in rows
    ]
    assert bayes_decisions(rows, costs).tolist() == expected


@given(st.integers(2, 6).flatmap(probabilities))
def test_zero_one_costs_mean_argmax_bit_by_bit(rows):
    """Thesis Prop. 6.10, ties and differences of one unit in the last place included."""
    assert bayes_decisions(rows, zero_one(rows.shape[1])).tolist() == rows.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("row", "costs", "decision"),
    [
        ([0.5, 0.5], zero_one(2), 0),
        ([0.1, 0.4, 0.1, 0.4], zero_one(4), 1),  # .1 + .1 + .4 is not .1 + .4 + .1 in float64
        ([0.9, 0.1], [[0, 1], [9, 0]], 0),  # 9 * .1 is not .9
        ([0.45, 0.05, 0.05, 0.45], np.abs(np.subtract.outer(np.arange(4), np.arange(4))), 1),
        ([0.3, 0.7], [[2, 2], [2, 2]], 0),
        ([0.6, 0.4], [[0, 1, 0.4], [1, 0, 0.4]], 0),  # abstaining costs just as much
    ],
)
def test_the_first_of_equal_decisions_wins_whatever_the_rounding(row, costs, decision):
    assert bayes_decisions([row], costs).tolist() == [decision]


def test_a_real_difference_is_no_tie():
    assert bayes_decisions([[0.9 - 1e-12, 0.1 + 1e-12]], [[0, 1], [9, 0]]).tolist() == [1]


def test_dear_misses_turn_the_decision():
    assert bayes_decisions([[0.8, 0.2]], zero_one(2)).tolist() == [0]
    assert bayes_decisions([[0.8, 0.2]], [[0, 1], [10, 0]]).tolist() == [1]


def test_an_empty_batch_gives_no_decision():
    assert bayes_decisions(np.empty((0, 3)), zero_one(3)).shape == (0,)


@pytest.mark.parametrize(
    ("rows", "costs", "field"),
    [([[0.5, 0.6]], zero_one(2), "probabilities"), ([[0.5, 0.5]], zero_one(3), "costs")],
)
def test_bad_arguments_are_named(rows, costs, field):
    with pytest.raises(InvalidInputError) as caught:
        bayes_decisions(rows, costs)
    assert caught.value.field == field
