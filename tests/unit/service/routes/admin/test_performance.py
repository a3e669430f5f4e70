"""Estimated beside realised performance of a population over HTTP."""

from collections.abc import Callable

import pytest

from lifelong_core.store import Store
from tests.unit.performance_samples import comparison
from tests.unit.service.conftest import Service

PATH = "/v1/admin/populations/linear/site-a/performance"


@pytest.fixture
def service(registered: None, store: Store, serve: Callable[..., Service]) -> Service:
    store.environments.ensure("site-a", limit=9)
    return serve()


def test_the_newest_comparison_is_the_answer(service: Service) -> None:
    model = service.store.models.get("linear")
    service.store.performance.store(model.id, "site-a", comparison())
    answer = service.client.get(PATH, headers=service.header("read"))
    assert answer.status_code == 200
    found = answer.json()
    assert (found["model"], found["environment"], found["confidence"]) == ("linear@1", "site-a", 0.95)
    assert len(found["days"]) == 6
    assert found["days"][0]["estimated"]["metrics"]["AC"] == pytest.approx([0.85, 0.82, 0.88])
    assert found["days"][5]["agreement"]["AC"]["verdict"] == "disagree"
    assert [head["head_version"] for head in found["heads"]] == [1, 2]
    assert found["swaps"] == [{"at": "2026-03-07T00:00:00+00:00", "head_version": 2}]
    assert found["calibration_drift"]["rejected"] is True
    assert found["selection"]["rejected"] is False
    assert "They disagree" in found["statements"][0]
    assert found["statements"][-1].startswith(
        "Expected cost (EC) is 0.093 (0.073 to 0.113) at the stated prevalences"
    )
    assert [(one["mix"], one["accepted"]) for one in found["class_mixes"]] == [
        ("stated", True),
        ("estimated", None),
        ("realised", False),
    ]
    assert found["rule_metric"] is None
    assert found["warnings"] == [
        "accuracy: they disagree.",
        "The answered probabilities are not calibrated: too sure.",
        "Expected cost (EC) reaches its threshold 0.2 at the stated prevalences, but misses it at the realised ones.",
        "a limit of the estimate",
    ]
    assert "inputs" not in found


def test_a_population_without_one_gets_a_hint(service: Service) -> None:
    answer = service.client.get(PATH)
    assert answer.status_code == 404
    assert "A running monitor computes it" in answer.json()["error"]["hint"]


def test_unknown_names_are_not_found(service: Service) -> None:
    for path, status in (("linear@7/site-a", 404), ("linear/nowhere", 404)):
        assert service.client.get(f"/v1/admin/populations/{path}/performance").status_code == status


def test_the_answer_needs_a_token_that_may_read(service: Service) -> None:
    assert service.client.get(PATH, headers=service.header("predict")).status_code == 403
