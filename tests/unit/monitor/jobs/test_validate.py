"""The kind `validate`: its result equals a validation of the active head by the design loop."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from lifelong_core.deploy import Argmax, LabeledLogits, fit_head
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.metrics import confusion_matrix, expected_cost
from lifelong_core.store import Model, Store
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, SHIFTED, draw
from tests.unit.monitor.recommendations import RECOMMENDED, attach, metric, naming

Payload = dict[str, Any]


@pytest.fixture
def payload(store: Store, model: Model) -> Payload:
    attach(store, AcceptanceThreshold(metric="TPR", class_index=0, value=0.5))
    drawn = draw(BALANCED, 150, seed=7)
    data = LabelledSet(
        LabeledLogits(drawn.logits, drawn.labels, np.arange(150) // 2),
        {"scanner": np.array(["A", "B", "B"] * 50), "age": np.arange(150)},
    )
    return {
        "task": "lesions",
        "model": model.reference,
        "recommendation_version": 1,
        "labelled_set": store.artifacts.put(data.to_bytes()),
        "metadata": ["scanner"],
        "replicates": 100,
        "level": 0.9,
    }


def done(store: Store, payload: Mapping[str, Any]) -> tuple[dict[str, Any], ValidationResult]:
    found = work_of("validate")(store, store.jobs.submit("validate", payload, actor="tests"))
    return found, ValidationResult.from_json(store.artifacts.get(found["result"]))


def test_the_head_that_serves_is_validated_by_the_tasks_metrics(
    store: Store, model: Model, payload: Payload
) -> None:
    found, result = done(store, payload)
    drawn = draw(BALANCED, 150, seed=7)
    made = store.heads.get(model.reference, 1).head.apply(drawn.logits).decisions
    assert result.estimate("EC") == expected_cost(confusion_matrix(drawn.labels, made, classes=3), COSTS)
    assert result.labels == ("EC", "TPR", "AUROC")
    assert (result.name, result.class_names) == (model.reference, CLASS_NAMES)
    assert (result.samples, result.cases, result.replicates, result.level) == (150, 75, 100, 0.9)
    assert {subgroup.attribute for subgroup in result.subgroups} == {"scanner"}
    assert (found["accepted"], found["samples"]) == (True, 150)
    assert result.recommendation == RECOMMENDED
    page = store.artifacts.get(found["report"]).decode()
    assert page.lower().startswith("<!doctype html>")
    assert model.reference in page


def test_metrics_of_groups_are_averaged_on_request(store: Store, model: Model, payload: Payload) -> None:
    _, result = done(store, payload | {"aggregation": "by_group"})
    assert result.aggregation == "by_group"
    assert any("Mean over" in note for note in result.value("TPR", 0).notes)
    assert result.decisions.source == "given"


def test_a_head_of_another_rule_than_the_recommendation_asks_for_is_named(
    store: Store, model: Model, payload: Payload
) -> None:
    said = "The head decides by another rule"
    _, result = done(store, payload)
    assert [text.startswith(said) for text in result.warnings][:1] == [True]
    asked = fit_head(draw(BALANCED, 600, seed=1), COSTS, class_names=CLASS_NAMES, decision_rule=Argmax())
    store.heads.publish(model.reference, asked, environment=None, actor="tests")
    _, refitted = done(store, payload)
    assert not any(text.startswith(said) for text in refitted.warnings)


def test_probabilities_hold_for_the_class_shares_that_the_head_assumes(
    store: Store, model: Model, payload: Payload
) -> None:
    target = (0.8, 0.1, 0.1)
    fingerprint = RECOMMENDED.fingerprint.model_copy(
        update={
            "prevalences_representative": False,
            "target_prevalences_known": True,
            "target_prevalences": target,
        }
    )
    of_benefit = naming(metric("NB", parameters={"threshold": 0.3}))
    attach(store, what=of_benefit.model_copy(update={"fingerprint": fingerprint}))
    _, result = done(store, payload | {"recommendation_version": 2})
    drawn = draw(BALANCED, 150, seed=7)
    head = store.heads.get(model.reference, 1).head
    weighted = head.apply(drawn.logits).probabilities * (np.array(target) / head.assumed_prevalence)
    decided = weighted / weighted.sum(axis=1, keepdims=True) >= 0.3
    for k in range(3):
        rates = np.array([decided[drawn.labels == true, k].mean() for true in range(3)]) * target
        wanted = rates[k] - (rates.sum() - rates[k]) * 0.3 / 0.7
        assert result.estimate("NB@0.3", k) == pytest.approx(wanted)


def test_it_becomes_an_evaluation_of_the_model(store: Store, model: Model, payload: Payload) -> None:
    found, _ = done(store, payload)
    evaluation = store.evaluations.newest(model.reference)
    assert (evaluation.result, evaluation.report) == (found["result"], found["report"])
    assert evaluation.labelled_set == payload["labelled_set"]
    assert (evaluation.accepted, evaluation.recommendation_version, evaluation.samples) == (True, 1, 150)
    assert evaluation.head == store.heads.get(model.reference, 1).head.digest
    assert (evaluation.job_id, evaluation.created_by) == (store.jobs.list()[0].id, "tests")


def test_an_environments_own_head_can_be_asked_for(store: Store, model: Model, payload: Payload) -> None:
    own = fit_head(draw(BALANCED, 600, seed=1), COSTS, target_prevalence=SHIFTED, class_names=CLASS_NAMES)
    store.heads.publish(model.reference, own, environment="clinic", actor="tests")
    drawn = draw(BALANCED, 150, seed=7)
    for environment, head in (("clinic", own), (None, store.heads.get(model.reference, 1).head)):
        _, result = done(store, payload | {"environment": environment})
        confusion = confusion_matrix(drawn.labels, head.apply(drawn.logits).decisions, classes=3)
        assert result.estimate("EC") == expected_cost(confusion, COSTS)


def test_cut_offs_are_chosen_on_the_calibration_set(store: Store, model: Model, payload: Payload) -> None:
    step = RECOMMENDED.steps[1]
    metric = step.metrics[0].model_copy(update={"metric": "TNR", "parameters": {"target": ("TPR", 0.9)}})
    steps = (step.model_copy(update={"metrics": (metric,)}),)
    attach(store, what=RECOMMENDED.model_copy(update={"steps": steps}))
    _, result = done(store, payload | {"recommendation_version": 2})
    cut_off = result.value("TNR@(TPR=0.9)", 0).cut_off
    assert (cut_off.chosen_on, cut_off.samples) == ("other_data", 150)


def test_the_calibration_set_itself_is_warned_of(store: Store, model: Model, payload: Payload) -> None:
    seen = LabelledSet(store.calibration_sets.load(1))
    _, result = done(
        store, payload | {"labelled_set": store.artifacts.put(seen.to_bytes()), "metadata": None}
    )
    assert "on which the head of the model was fitted" in result.warnings[0]
    assert store.evaluations.newest(model.reference) is None


def test_what_does_not_fit_is_named(store: Store, payload: Payload) -> None:
    wrong: list[tuple[Payload, type[Exception], str | None]] = [
        ({"model": "nobody@1"}, NotFoundError, "model"),
        ({"task": "others"}, InvalidInputError, "model"),
        ({"recommendation_version": 9}, NotFoundError, "version"),
        ({"labelled_set": "0" * 64}, NotFoundError, None),
        ({"metadata": ["site"]}, InvalidInputError, "metadata"),
        ({"replicates": 0}, InvalidInputError, "replicates"),
        ({"unknown": 1}, InvalidInputError, "unknown"),
    ]
    for changes, error, field in wrong:
        with pytest.raises(error) as caught:
            done(store, payload | changes)
        assert getattr(caught.value, "field", None) == field


def test_another_number_of_classes_is_refused(store: Store, payload: Payload) -> None:
    data = LabelledSet(LabeledLogits([[1.0, 0.0], [0.0, 1.0]], [0, 1]))
    with pytest.raises(InvalidInputError, match="expected 3 columns"):
        done(store, payload | {"labelled_set": store.artifacts.put(data.to_bytes())})
