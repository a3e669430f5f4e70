"""The kind `compare`: its report equals that of the two registered models with the heads that decide now."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from lifelong_core.deploy import Argmax, LabeledLogits, fit_head
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.promotion import PromotionReport
from lifelong_core.store import Model, NotAcceptedError, Store, check_accepted, register_calibration
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, SHIFTED, draw
from tests.unit.monitor.recommendations import RECOMMENDED, attach

Payload = dict[str, Any]


@pytest.fixture
def challenger(store: Store, model: Model) -> Model:
    """A second model of the task."""
    made = store.models.add(model.name, model.name, kind="external", actor="tests")
    register_calibration(store, made.reference, draw(BALANCED, 600, seed=2), actor="tests")
    attach(store, AcceptanceThreshold(metric="TPR", class_index=0, value=0.5))
    return store.models.get(made.reference)


@pytest.fixture
def data() -> PairedSet:
    new = draw(BALANCED, 150, seed=7)
    noise = np.random.default_rng(3).normal(scale=1.5, size=new.logits.shape)
    return PairedSet(
        LabelledSet(
            LabeledLogits(new.logits, new.labels, np.arange(150) // 2),
            {"scanner": np.array(["A", "B", "B"] * 50)},
        ),
        (new.logits + noise).astype(np.float32),
        np.array([f"case {row}" for row in range(150)]),
    )


@pytest.fixture
def payload(store: Store, model: Model, challenger: Model, data: PairedSet) -> Payload:
    return {
        "task": "lesions",
        "model": challenger.reference,
        "against": model.reference,
        "recommendation_version": 1,
        "labelled_set": store.artifacts.put(data.to_bytes()),
        "origin": "a test",
        "replicates": 100,
    }


def done(store: Store, payload: Mapping[str, Any]) -> tuple[dict[str, Any], PromotionReport]:
    found = work_of("compare")(store, store.jobs.submit("compare", payload, actor="tests"))
    return found, PromotionReport.from_json(store.artifacts.get(found["result"]))


def test_both_models_are_compared_as_their_heads_decide(
    store: Store, model: Model, challenger: Model, data: PairedSet, payload: Payload
) -> None:
    found, report = done(store, payload)
    heads = [store.heads.get(reference, 1).head for reference in (challenger.reference, model.reference)]
    labelled = data.new.labelled
    own = heads[0].apply(labelled.logits).decisions, heads[1].apply(data.current_logits).decisions
    expected = [np.array(COSTS)[labelled.labels, one].mean() for one in own]
    cost = report.costs[0].difference
    assert (cost.new, cost.current) == pytest.approx(expected)
    assert (report.new.reference, report.current.reference) == (challenger.reference, model.reference)
    assert report.new_result.recommendation == RECOMMENDED
    assert report.changes.mcnemar.groups == 75
    assert report.changes.changed == int((own[0] != own[1]).sum())
    assert {one.name for one in report.changes.better} <= {f"case {row}" for row in range(150)}
    assert report.origin == "a test"
    assert (found["advice"], found["samples"]) == (report.verdict.advice, 150)
    page = store.artifacts.get(found["report"]).decode()
    assert f"Promotion of {challenger.reference}" in page


def test_it_counts_as_a_validation_of_the_new_model(
    store: Store, challenger: Model, data: PairedSet, payload: Payload
) -> None:
    with pytest.raises(NotAcceptedError, match="never validated"):
        check_accepted(store, challenger.reference)
    found, report = done(store, payload)
    (evaluation,) = store.evaluations.list(challenger.reference)
    assert (evaluation.accepted, evaluation.samples) == (found["accepted"], 150) == (True, 150)
    assert store.artifacts.get(evaluation.result).decode() == report.new_result.to_json()
    assert check_accepted(store, challenger.reference) is None


def test_on_its_own_calibration_set_it_does_not(
    store: Store, challenger: Model, data: PairedSet, payload: Payload
) -> None:
    own = draw(BALANCED, 600, seed=2)
    seen = PairedSet(LabelledSet(own), own.logits[:, ::-1].copy())
    _, report = done(store, payload | {"labelled_set": store.artifacts.put(seen.to_bytes())})
    assert any("calibration cases of" in text for text in report.warnings)
    assert any(text.startswith("lesions@2: The head decides by another rule") for text in report.warnings)
    assert store.evaluations.list(challenger.reference) == []


def test_an_environment_of_known_prevalence_has_its_own_cost(
    store: Store, model: Model, challenger: Model, data: PairedSet, payload: Payload
) -> None:
    own = fit_head(draw(BALANCED, 600, seed=1), COSTS, target_prevalence=SHIFTED, class_names=CLASS_NAMES)
    store.heads.publish(model.reference, own, environment="clinic", actor="tests")
    _, report = done(store, payload)
    (there,) = report.costs[1:]
    assert there.environment == "clinic"
    assert there.prevalence == pytest.approx(SHIFTED)
    calibration = draw(BALANCED, 600, seed=2)
    rule = Argmax()  # of the answers, which became the rule of the task
    fitted = fit_head(
        calibration,
        COSTS,
        target_prevalence=own.assumed_prevalence,
        class_names=CLASS_NAMES,
        decision_rule=rule,
    )
    labelled = data.new.labelled

    def cost(decisions: Any) -> float:
        rates = [np.array(COSTS)[k, decisions[labelled.labels == k]].mean() for k in range(3)]
        return float(np.dot(SHIFTED, rates))

    assert there.difference.new == pytest.approx(cost(fitted.apply(labelled.logits).decisions))
    assert there.difference.current == pytest.approx(cost(own.apply(data.current_logits).decisions))


def test_what_does_not_fit_is_named(store: Store, payload: Payload) -> None:
    store.tasks.add("others", CLASS_NAMES, COSTS, actor="tests")
    other = store.models.add("others", "other", kind="external", actor="tests")
    register_calibration(store, other.reference, draw(BALANCED, 600, seed=2), actor="tests")
    wrong: list[tuple[Payload, type[Exception], str | None]] = [
        ({"model": "nobody@1"}, NotFoundError, "model"),
        ({"against": other.reference}, InvalidInputError, "against"),
        ({"against": payload["model"]}, InvalidInputError, "models"),
        ({"recommendation_version": 9}, NotFoundError, "version"),
        ({"labelled_set": "0" * 64}, NotFoundError, None),
        ({"unknown": 1}, InvalidInputError, "unknown"),
    ]
    for changes, error, field in wrong:
        with pytest.raises(error) as caught:
            done(store, payload | changes)
        assert getattr(caught.value, "field", None) == field
