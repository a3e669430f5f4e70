"""The neighbours of a task are ranked with the stored ranker, or it is said why not."""

import pytest

from lifelong_core.develop.knowledge.entry import TransferOutcomes
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.fitting import fit_ranker
from lifelong_core.develop.ranking.rank_sources import rank_sources
from lifelong_core.develop.ranking.ranker import FittedRanker
from lifelong_core.store import Store
from lifelong_core.store.knowledge.neighbours import NOT_FITTED, rank_neighbours
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from tests.unit.develop.ranking.examples import SCENARIO, make_outcomes
from tests.unit.store.knowledge_samples import make_entry
from tests.unit.store.samples import CLASSES, COSTS

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def outcomes() -> TransferOutcomes:
    return make_outcomes()


@pytest.fixture(scope="module")
def ranker(outcomes: TransferOutcomes) -> FittedRanker:
    return fit_ranker(outcomes)


@pytest.fixture
def known(store: Store, outcomes: TransferOutcomes) -> KnowledgeBase:
    base = KnowledgeBase.from_outcomes(outcomes)
    store.knowledge.import_base(base, actor="tests")
    return base


def put(store: Store, ranker: FittedRanker) -> None:
    store.rankers.put(
        ranker.to_bytes(),
        outcomes_digest=ranker.outcomes_digest,
        revision=store.knowledge.revision(),
        actor="tests",
    )


def test_the_stored_ranker_ranks_as_the_fitted_one(store: Store, known: KnowledgeBase, ranker: FittedRanker):
    put(store, ranker)
    target = known.tasks[0]
    found = rank_neighbours(store, target, scenario=SCENARIO)
    assert found == rank_sources(store.knowledge.load(), target, scenario=SCENARIO, ranker=ranker)
    assert len(found.suggestions) == len(known) - 2
    assert found.ranker == ranker.digest
    few = rank_neighbours(store, target, scenario=SCENARIO, limit=3)
    assert few.suggestions == found.suggestions[:3]
    assert few.recommended == min(found.recommended, 3)
    other = rank_neighbours(
        store, target, scenario=SCENARIO, strategy="smallest source first", measure="AUROC"
    )
    sizes = [known.entry(one.source).card.samples for one in other.suggestions]
    assert sizes == sorted(sizes)


def test_without_a_fitted_ranker_it_is_said_that_one_will_come(store: Store, known: KnowledgeBase):
    found = rank_neighbours(store, known.tasks[0], scenario=SCENARIO, limit=4)
    assert (found.suggestions, found.recommended, found.declined) == ((), 0, NOT_FITTED)
    assert len(found.neighbours) == 4


@pytest.mark.parametrize("is_failed", [False, True])
def test_it_is_said_why_no_ranker_could_be_fitted(store: Store, known: KnowledgeBase, is_failed: bool):
    job = store.jobs.claim("monitor", lease_seconds=60)
    assert job is not None
    if is_failed:
        store.jobs.fail(job, InvalidInputError("a library is missing."))
    else:
        store.jobs.succeed(job, {"digest": None, "reason": "too few data sets."})
    found = rank_neighbours(store, known.tasks[0], scenario=SCENARIO)
    assert (found.declined or "").endswith("a library is missing." if is_failed else "too few data sets.")


def test_without_any_transfer_the_ranking_itself_says_why_it_declines(store: Store):
    store.knowledge.import_base(KnowledgeBase.from_entries(map(make_entry, "ab")), actor="tests")
    found = rank_neighbours(store, "a", scenario=SCENARIO)
    assert "Too few transfers" in (found.declined or "")


def test_a_ranker_that_this_version_cannot_read_counts_as_none(store: Store, known: KnowledgeBase):
    store.rankers.put(b"of another version", outcomes_digest="a" * 64, revision=1, actor="tests")
    assert store.rankers.read() is None
    assert rank_neighbours(store, known.tasks[0], scenario=SCENARIO).declined == NOT_FITTED


def test_a_replaced_ranker_is_read_again(store: Store, ranker: FittedRanker):
    put(store, ranker)
    assert store.rankers.read() == ranker
    assert store.rankers.read() is store.rankers.read()
    newer = fit_ranker(make_outcomes(seed=1))
    store.knowledge.put(make_entry(), actor="tests")
    put(store, newer)
    assert store.rankers.read() == newer


def test_a_task_that_is_only_registered_is_told_from_an_unknown_one(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    with pytest.raises(NotFoundError, match=r"^task: .*neither a card nor a fingerprint of the task lesions"):
        rank_neighbours(store, "lesions", scenario=SCENARIO)
    with pytest.raises(NotFoundError, match=r"^task: there is no task 'other'"):
        rank_neighbours(store, "other", scenario=SCENARIO)


def test_an_unknown_measure_or_strategy_is_named(store: Store, known: KnowledgeBase):
    with pytest.raises(InvalidInputError, match=r"^measure: there is no measure 'AUR'"):
        rank_neighbours(store, known.tasks[0], scenario=SCENARIO, measure="AUR")
    with pytest.raises(InvalidInputError, match=r"^strategy: "):
        rank_neighbours(store, known.tasks[0], scenario=SCENARIO, strategy="best")
