"""Neighbours of a task over HTTP: a ranking as a document, or the parameter at fault."""

from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.fitting import fit_ranker
from lifelong_core.develop.ranking.suggestion import Ranking
from lifelong_core.store.knowledge.neighbours import rank_neighbours
from tests.unit.develop.ranking.examples import SCENARIO, make_outcomes
from tests.unit.service.conftest import Service
from tests.unit.service.routes.test_operations import error_of


def fill(service: Service) -> str:
    """Outcomes and the ranker that was fitted on them; returns the name of a task."""
    outcomes = make_outcomes()
    store, ranker = service.store, fit_ranker(outcomes)
    store.knowledge.import_base(KnowledgeBase.from_outcomes(outcomes), actor="test")
    store.rankers.put(ranker.to_bytes(), outcomes_digest=ranker.outcomes_digest, revision=1, actor="test")
    return outcomes.tasks[0]


def test_sources_come_with_gain_interval_and_evidence(service: Service) -> None:
    task = fill(service)
    path = f"/v1/admin/tasks/{task}/neighbours?scenario={SCENARIO}"
    answer = service.client.get(path, headers=service.header("read"))
    assert answer.status_code == 200, answer.text
    assert Ranking.from_document(answer.json()) == rank_neighbours(service.store, task, scenario=SCENARIO)
    assert answer.json()["suggestions"]
    few = service.client.get(f"{path}&measure=AUROC&strategy=random&confidence=0.9&limit=2").json()
    assert (few["measure"], few["strategy"], few["confidence"]) == ("AUROC", "random", 0.9)
    assert len(few["suggestions"]) == 2
    listed = service.client.get("/v1/admin/knowledge").json()
    assert listed["ranker"]["is_current"] is True
    service.store.knowledge.delete(task, actor="test")
    assert service.client.get("/v1/admin/knowledge").json()["ranker"]["is_current"] is False


def test_a_parameter_at_fault_is_named(service: Service) -> None:
    service.store.knowledge.import_base(KnowledgeBase.from_outcomes(make_outcomes()), actor="test")
    for query, status, field in (
        ("", 422, "scenario"),
        ("scenario=training", 422, "scenario"),
        (f"scenario={SCENARIO}&measure=AUR", 422, "measure"),
        (f"scenario={SCENARIO}&measure=", 422, "measure"),
        (f"scenario={SCENARIO}&strategy=best", 422, "strategy"),
        (f"scenario={SCENARIO}&confidence=1", 422, "confidence"),
        (f"scenario={SCENARIO}&limit=0", 422, "limit"),
        (f"scenario={SCENARIO}&seed=1", 422, "seed"),
        (f"scenario={SCENARIO}&limit=1&limit=2", 422, "limit"),
    ):
        answer = service.client.get(f"/v1/admin/tasks/task0-0/neighbours?{query}")
        assert (answer.status_code, error_of(answer)["field"]) == (status, field)


def test_a_task_without_an_entry_is_not_found(service: Service) -> None:
    for task, said in (("skin", "neither a card nor a fingerprint"), ("other", "there is no task")):
        answer = service.client.get(f"/v1/admin/tasks/{task}/neighbours?scenario={SCENARIO}")
        assert (answer.status_code, error_of(answer)["field"]) == (404, "task")
        assert said in error_of(answer)["message"]
