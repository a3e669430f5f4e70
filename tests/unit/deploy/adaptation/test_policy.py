import dataclasses
import json

import numpy as np
import pytest

from lifelong_core.deploy import AdaptationContext, AdaptationPolicy, PrevalenceEstimate
from lifelong_core.values.errors import InvalidInputError


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"minimum_samples": 0}, "minimum_samples"),
        ({"minimum_samples": 1.5}, "minimum_samples"),
        ({"minimum_samples": "many"}, "minimum_samples"),
        ({"minimum_samples": float("inf")}, "minimum_samples"),
        ({"minimum_samples": True}, "minimum_samples"),
        ({"hysteresis": True}, "hysteresis"),
        ({"minimum_gain": np.bool_(0)}, "minimum_gain"),
        ({"maximum_step": True}, "maximum_step"),
        ({"level": 0.0}, "level"),
        ({"level": 1.0}, "level"),
        ({"assumption_level": 0}, "assumption_level"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"average_run_length": 0.5}, "average_run_length"),
        ({"average_run_length": 2e12}, "average_run_length"),
        ({"tolerance": -0.01}, "tolerance"),
        ({"tolerance": 1.01}, "tolerance"),
        ({"minimum_gain": -0.1}, "minimum_gain"),
        ({"minimum_gain": float("nan")}, "minimum_gain"),
        ({"minimum_probability_gain": -0.001}, "minimum_probability_gain"),
        ({"minimum_probability_gain": True}, "minimum_probability_gain"),
        ({"maximum_step": 0}, "maximum_step"),
        ({"maximum_step": 2.1}, "maximum_step"),
        ({"cool_down_seconds": -1}, "cool_down_seconds"),
        ({"hysteresis": -1}, "hysteresis"),
        ({"mode": "manual"}, "mode"),
        ({"assumption_violated": "ignore"}, "assumption_violated"),
        ({"pooling": 1}, "pooling"),
    ],
)
def test_an_illegal_policy_is_named(arguments, field):
    with pytest.raises(InvalidInputError) as caught:
        AdaptationPolicy(**arguments)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "arguments",
    [
        {"minimum_samples": 1},
        {"average_run_length": 1},
        {"average_run_length": 1e12},
        {"tolerance": 0},
        {"tolerance": 1},
        {"minimum_gain": 0},
        {"minimum_probability_gain": 0},
        {"maximum_step": 1e-3},
        {"maximum_step": 2},
        {"cool_down_seconds": 0},
        {"hysteresis": 0},
    ],
)
def test_the_ends_of_the_ranges_are_legal(arguments):
    AdaptationPolicy(**arguments)


def test_a_policy_survives_json():
    policy = AdaptationPolicy(
        minimum_samples=500, tolerance=0.02, mode="propose", assumption_violated="report", pooling=True
    )
    assert AdaptationPolicy.from_document(json.loads(json.dumps(policy.to_document()))) == policy


@pytest.mark.parametrize(
    "document",
    [{}, {**AdaptationPolicy().to_document(), "schema_version": 5}, {"schema_version": []}, None, []],
)
def test_another_document_is_no_policy(document):
    with pytest.raises(InvalidInputError):
        AdaptationPolicy.from_document(document)


@pytest.mark.parametrize(
    "values",
    [
        {"unusual_traffic": "report"},
        {"change_level": 0.05},
        {"minimum_probability_gain": 1},
        {"labelled_evidence": True},
    ],
)
def test_what_the_evidence_does_not_depend_on_leaves_it(values):
    """The digest is that of the versions before: their evidence counts on."""
    asking = AdaptationPolicy(**values)
    assert asking != AdaptationPolicy()
    assert asking.digest == AdaptationPolicy().digest
    assert asking.digest == "a4c01f30d5feacc7115db473a7c2a631327403b038134c063f3e482becdf3332"


@pytest.mark.parametrize(
    "name",
    [
        item.name
        for item in dataclasses.fields(AdaptationPolicy)
        if item.name
        not in (
            *("unusual_traffic", "change_level", "minimum_probability_gain"),
            *("labelled_evidence", "label_error_rates"),
        )
    ],
)
def test_every_other_value_enters_the_digest(name):
    other = {"minimum_samples": 7, "mode": "shadow", "assumption_violated": "report", "pooling": True}
    changed = AdaptationPolicy(**{name: other.get(name, 0.77 if name != "average_run_length" else 9.0)})
    assert changed.digest != AdaptationPolicy().digest
    assert AdaptationPolicy().digest == AdaptationPolicy().digest


def test_label_errors_are_written_only_where_there_are_any():
    """Without them documents, and with them digests, are those from before there were any."""
    document = AdaptationPolicy(label_error_rates=(0.0, 0.0)).to_document()
    assert document == AdaptationPolicy().to_document()
    assert "label_error_rates" not in document
    policy = AdaptationPolicy(label_error_rates=(0.0, 0.1))
    assert AdaptationPolicy.from_document(json.loads(json.dumps(policy.to_document()))) == policy
    assert policy.digest == AdaptationPolicy().digest
    for rates in (0.1, (1.0,), (-0.1,), (True,), ("x",)):
        with pytest.raises(InvalidInputError) as caught:
            AdaptationPolicy(label_error_rates=rates)
        assert caught.value.field == "label_error_rates"


def estimate():
    p = np.array([0.25, 0.75])
    return PrevalenceEstimate(p, p, p, 0.95, 10, 10.0, "MLLS", np.eye(2) / 7, np.full(2, 9.0))


def test_a_context_survives_json_exactly():
    context = AdaptationContext(
        0.1 + 0.2,
        pinned=True,
        previous_prevalence=[1 / 3, 2 / 3],
        others=(estimate(),),
        rejected=(estimate(),),
    )
    again = AdaptationContext.from_document(json.loads(json.dumps(context.to_document())))
    assert again == context
    assert hash(again) == hash(context)
    assert AdaptationContext.from_document(AdaptationContext().to_document()) == AdaptationContext()


def test_the_arrays_of_a_context_cannot_be_changed():
    given = np.array([0.5, 0.5])
    context = AdaptationContext(previous_prevalence=given)
    given[0] = 9
    assert context.previous_prevalence.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        context.previous_prevalence[0] = 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"seconds_since_swap": -1}, "seconds_since_swap"),
        ({"seconds_since_swap": "long"}, "seconds_since_swap"),
        ({"pinned": "yes"}, "pinned"),
        ({"previous_prevalence": [0.5, 0.6]}, "previous_prevalence"),
        ({"others": 5}, "others"),
        ({"others": [{}]}, "schema_version"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_bad_context_is_refused(changes, field):
    with pytest.raises(InvalidInputError) as caught:
        AdaptationContext.from_document({**AdaptationContext().to_document(), **changes})
    assert caught.value.field == field
