"""The kind `rank`: each change of the knowledge base submits it, and it stores the ranker of the present outcomes."""

import sys
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConfigurationError
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.store.knowledge_samples import make_base, make_entry, make_histogram


def claim(store: Store) -> Job:
    job = store.jobs.claim("tests", lease_seconds=600)
    assert (job.kind, job.created_by) == ("rank", "ann")
    return job


def run(store: Store) -> dict[str, Any]:
    """Do the work of the job that a change of the knowledge base has submitted."""
    job = claim(store)
    result = work_of("rank")(store, job)
    store.jobs.succeed(job, result)
    return result


def test_a_change_of_the_knowledge_base_fits_the_ranker_again(store: Store) -> None:
    store.knowledge.import_base(make_base(7), actor="ann")
    first, ranker = run(store), store.rankers.read()
    outcomes = store.knowledge.load().outcomes()
    assert first == {
        "digest": ranker.digest,
        "outcomes": ranker.outcomes_digest,
        "revision": store.knowledge.revision(),
        "reason": None,
    }
    assert set(ranker.scenarios) == {"pretraining"}
    assert "pretraining" in outcomes.scenarios
    store.knowledge.delete(outcomes.cards[0].name, actor="ann")
    second = run(store)
    assert second["revision"] == first["revision"] + 1
    assert second["outcomes"] != first["outcomes"]
    assert store.jobs.claim("tests", lease_seconds=600) is None


def test_a_knowledge_base_with_too_few_outcomes_has_no_ranker_and_no_failed_job(store: Store) -> None:
    store.knowledge.put(make_entry("moles", sources=("naevi",)), actor="ann")
    result = run(store)
    assert (result["digest"], result["outcomes"], result["revision"]) == (None, None, None)
    assert "data sets" in result["reason"]
    assert store.rankers.read() is None


def test_fingerprints_without_transfers_give_an_index_and_need_no_scikit_learn(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Store(store.database, store.artifacts, knowledge_index=tmp_path / "index")
    own.knowledge.put(make_entry("moles"), actor="ann")
    own.knowledge.put_fingerprint("moles", make_histogram(), actor="ann")
    monkeypatch.setitem(sys.modules, "lifelong_core.develop.ranking.fitting", None)
    assert (run(own)["digest"], len(list((tmp_path / "index").iterdir()))) == (None, 1)
    own.knowledge.delete("moles", actor="ann")
    run(own)
    assert list((tmp_path / "index").iterdir()) == []


def test_without_scikit_learn_the_job_says_what_to_install(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.knowledge.put(make_entry("moles", sources=("naevi",)), actor="ann")
    monkeypatch.setitem(sys.modules, "lifelong_core.develop.ranking.fitting", None)
    with pytest.raises(ConfigurationError) as caught:
        work_of("rank")(store, claim(store))
    assert 'pip install -c constraints.txt -e ".[develop]"' in (caught.value.hint or "")
