"""Decisions before a swap that the new head changes, on both databases, against a computation for each row."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import (
    Cycle,
    LogEntry,
    Model,
    NewLabel,
    Prediction,
    Store,
    logged_at,
    new_prediction_id,
)
from lifelong_core.store.cycles import affected_decisions
from lifelong_core.store.cycles.affected_ranking import Ranking, RankPosition
from lifelong_core.store.cycles.swaps import LATE, AffectedFigures
from lifelong_core.store.log import identifiers
from lifelong_core.values.errors import ConflictError, InvalidInputError
from tests.databases import sqlite_only
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, cycle

SITE = "site-a"
NEW_HEAD = PostProcessingHead(1.0, [1.0, 0.0, 0.0], COSTS, [0.8, 0.1, 0.1], CLASSES)


def rows(
    model: Model,
    count: int,
    *,
    head_version: int = 1,
    environment: str = SITE,
    group: bytes | None = None,
    ago: timedelta = timedelta(0),
) -> list[Prediction]:
    """Predictions with decisions of no head in particular, made now or a while ago."""
    first = identifiers.first_id_at(datetime.now(UTC) - ago).int if ago else 0
    made = []
    for index in range(count):
        identity = UUID(int=first + index) if ago else new_prediction_id()
        rng = np.random.default_rng(identity.int % 2**32)
        logits = (2 * rng.normal(size=3)).astype(np.float32)
        decision = int(rng.integers(3))
        made.append(Prediction(identity, model.id, environment, head_version, decision, logits, group))
    return made


def append(store: Store, predictions: list[Prediction]) -> list[Prediction]:
    store.predictions.append([LogEntry((one,)) for one in predictions])
    return predictions


def swap(
    store: Store, model: Model, first: UUID | datetime, *, mode: str = "auto", **report: object
) -> Cycle:
    """A cycle whose window began with this prediction, or in this hour, and which wants another head."""
    begun = first.isoformat() if isinstance(first, datetime) else str(first)
    known = store.cycles.list(model.id, SITE)
    done = replace(
        cycle(model, due_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=len(known)), outcome="swap"),
        report=report,
        log_position=17 + len(known),
        head_version=max((one.published_version or 1 for one in known), default=1),
    )
    candidate = replace(NEW_HEAD, bias=NEW_HEAD.bias + len(known), provenance={"window": {"first": begun}})
    return store.cycles.finish(done, candidate=candidate, expected_sequence=None, mode=mode)  # type: ignore[arg-type]


@pytest.fixture
def model(store: Store) -> Model:
    store.environments.ensure(SITE, limit=9)
    return add_serving_model(store)[0]


@dataclass(frozen=True)
class Expected:
    """What a look at each row finds, by definition."""

    listed: list[tuple[float, UUID, int]]

    @classmethod
    def of(cls, predictions: list[Prediction], head: PostProcessingHead = NEW_HEAD) -> "Expected":
        found = []
        for one in predictions:
            output = head.apply(one.logits[None])
            new = int(output.decisions[0])
            if new != one.decision:
                cost = float(output.expected_costs[0, one.decision] - output.expected_costs[0, new])
                found.append((cost, one.id, new))
        return cls(sorted(found, key=lambda item: (-item[0], item[1])))


def figures_of(store: Store, done: Cycle) -> AffectedFigures:
    *_, figures = store.affected.scan(store.affected.period(done))
    assert figures is not None
    return figures


def test_all_decisions_that_differ_are_found_most_costly_first(store: Store, model: Model) -> None:
    append(
        store, rows(model, 20, ago=timedelta(seconds=1))
    )  # before the window, whose first millisecond counts whole
    logged = append(store, rows(model, 60, group=b"g" * 16) + rows(model, 40))
    done = swap(store, model, logged[0].id)
    expected = Expected.of(logged)
    assert 20 < len(expected.listed) < 90
    found = store.affected.most_costly(store.affected.period(done))
    listed = list(found.predictions)
    assert [one.id for one in listed] == [identity for _, identity, _ in expected.listed]
    assert [one.new_decision for one in listed] == [new for *_, new in expected.listed]
    assert [one.expected_cost for one in listed] == pytest.approx([cost for cost, *_ in expected.listed])
    by_id = {one.id: one for one in logged}
    assert all(
        (one.decision, one.group_hash, one.head_version)
        == (by_id[one.id].decision, by_id[one.id].group_hash, 1)
        for one in listed
    )
    counts = found.figures.counts
    assert (counts.predictions, counts.affected) == (100, len(listed))
    assert counts.share == len(listed) / 100
    assert counts.expected_cost == pytest.approx(sum(cost for cost, *_ in expected.listed))
    assert (found.figures.groups, found.figures.quarantined, found.figures.other_models) == (1, 0, 0)
    assert found.next is None


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_pages_hold_each_prediction_once(
    store: Store, model: Model, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(affected_decisions, "BLOCK_ROWS", 9)
    logged = rows(model, 30)
    # Equal logits and decisions: the order of equal costs is that of the ids.
    logged += [replace(one, id=new_prediction_id()) for one in logged]
    append(store, logged)
    done = swap(store, model, logged[0].id)
    pages, position = [], None
    while True:
        page = store.affected.most_costly(store.affected.period(done), limit=limit, after=position)
        listed = list(page.predictions)
        assert page.figures.counts.affected == len(Expected.of(logged).listed)
        assert len(listed) <= limit
        pages += listed
        if page.next is None:
            break
        position = RankPosition.parse(str(page.next), field="after")
    assert [one.id for one in pages] == [identity for _, identity, _ in Expected.of(logged).listed]


@sqlite_only
def test_the_period_begins_with_the_change_that_the_report_names(store: Store, model: Model) -> None:
    before, after = append(store, rows(model, 30, ago=timedelta(hours=2))), append(store, rows(model, 30))
    changed_at = logged_at(after[0].id).isoformat()
    earlier = {"changed_at": logged_at(before[5].id).isoformat()}
    done = swap(store, model, before[0].id, change_points=[earlier, {"changed_at": changed_at}])
    assert figures_of(store, done).counts.affected == len(Expected.of(after).listed)
    assert figures_of(store, done).since == logged_at(after[0].id)


@pytest.mark.parametrize("report", [{}, {"change_points": []}, {"change_points": [{"changed_at": None}]}])
def test_without_a_change_the_period_begins_with_the_window(
    store: Store, model: Model, report: dict[str, object]
) -> None:
    append(store, rows(model, 10, ago=timedelta(hours=3)))
    logged = append(store, rows(model, 10, ago=timedelta(hours=2))) + append(store, rows(model, 10))
    for first in (logged[0].id, logged_at(logged[0].id)):
        done = swap(store, model, first, **report)
        assert figures_of(store, done).counts.predictions == 20
        head = store.heads.get(model.reference, done.published_version or 0).head
        assert figures_of(store, done).counts.affected == len(Expected.of(logged, head).listed)


def test_decisions_of_the_old_head_after_the_swap_count_and_those_of_the_new_one_do_not(
    store: Store, model: Model
) -> None:
    logged = append(store, rows(model, 20))
    done = swap(store, model, logged[0].id)
    late, new = rows(model, 20), rows(model, 20, head_version=done.published_version or 0)
    append(store, late + new)
    assert figures_of(store, done).counts.affected == len(Expected.of(logged + late).listed)
    period = store.affected.period(done)
    assert period.activated_at is not None
    assert period.until == period.activated_at + LATE
    # What a worker decides with the old head from the next activation on belongs to that one.
    store.heads.rollback(model.reference, environment=SITE, actor="tests")
    append(store, rows(model, 20))
    assert figures_of(store, done).counts.predictions == 40
    assert store.affected.period(done).until < period.until


@sqlite_only
def test_rows_that_cannot_be_judged_are_left_out_and_counted(store: Store, model: Model) -> None:
    other = add_model(store, "another")
    logged = rows(model, 10)
    append(store, logged)
    broken = rows(model, 5)
    append(
        store,
        [
            replace(broken[0], logits=np.zeros(3, np.float32)),
            replace(broken[1], logits=np.array([1, 2], np.float32)),
            replace(broken[2], logits=np.array([1, 2, 3, 4], np.float32)),
            replace(broken[3], decision=3),
        ],
    )
    append(
        store, rows(other, 6) + rows(other, 2, environment="default") + rows(model, 3, environment="default")
    )
    figures = figures_of(store, swap(store, model, logged[0].id))
    assert (figures.counts.predictions, figures.quarantined, figures.other_models) == (10, 4, 6)
    assert figures.counts.affected == len(Expected.of(logged).listed)


@sqlite_only
def test_a_proposal_is_compared_up_to_its_approval(store: Store, model: Model) -> None:
    logged = append(store, rows(model, 20))
    proposed = swap(store, model, logged[0].id, mode="propose")
    logged += append(store, rows(model, 20))
    assert store.swaps.uncounted() == []
    period = store.affected.period(proposed)
    assert (period.head_version, period.activated_at) == (None, None)
    assert figures_of(store, proposed).counts.affected == len(Expected.of(logged).listed)
    approved = store.cycles.approve(proposed.id, actor="tests")
    assert [one.cycle_id for one in store.swaps.uncounted()] == [proposed.id]
    place = proposed.environment
    activation = store.heads.activations(model.reference, environment=place)[-1]
    assert store.swaps.newest() == {(model.id, place): activation.activated_at}
    append(store, rows(model, 20, head_version=approved.published_version or 0))
    assert figures_of(store, approved).counts.affected == len(Expected.of(logged).listed)


@sqlite_only
def test_a_rejected_proposal_is_compared_up_to_its_rejection(store: Store, model: Model) -> None:
    logged = append(store, rows(model, 20, ago=timedelta(minutes=1)))
    proposed = swap(store, model, logged[0].id, mode="propose")
    rejected = store.cycles.reject(proposed.id, reason="why not", actor="tests")
    assert rejected.rejection is not None
    assert store.affected.period(rejected).until == rejected.rejection.rejected_at
    assert figures_of(store, rejected).counts.affected == len(Expected.of(logged).listed)


@sqlite_only
def test_in_mode_shadow_the_list_says_what_a_swap_would_have_changed(store: Store, model: Model) -> None:
    append(store, rows(model, 10, ago=timedelta(hours=2)))
    logged = append(store, rows(model, 20))
    done = replace(
        cycle(model, outcome="swap"),
        finished_at=datetime.now(UTC) + timedelta(milliseconds=1),
        window_samples=20,
        log_position=store.predictions.log_position(),
        report={"candidate": NEW_HEAD.to_document()},
    )
    shadowed = store.cycles.finish(done, candidate=NEW_HEAD, expected_sequence=None, mode="shadow")
    later = append(store, rows(model, 10, ago=timedelta(seconds=-5)))
    # Without a word on the window, it is found in the log, also where rows came later.
    assert store.affected.period(shadowed).since == logged_at(logged[0].id)
    assert figures_of(store, shadowed).counts.affected == len(Expected.of(logged).listed)
    assert len(later) == 10


@sqlite_only
def test_of_a_window_that_is_gone_nothing_is_listed(store: Store, model: Model) -> None:
    done = replace(cycle(model, outcome="swap"), report={"candidate": NEW_HEAD.to_document()})
    shadowed = store.cycles.finish(done, candidate=NEW_HEAD, expected_sequence=None, mode="shadow")
    assert figures_of(store, shadowed).counts.predictions == 0


@sqlite_only
def test_a_cycle_that_wanted_no_head_has_no_list(store: Store, model: Model) -> None:
    kept = store.cycles.finish(cycle(model), candidate=None, expected_sequence=None)
    with pytest.raises(ConflictError, match="wanted no other head"):
        store.affected.period(kept)


@sqlite_only
def test_erased_groups_are_gone_from_the_list_and_said_to_be(store: Store, model: Model) -> None:
    erased, kept = rows(model, 20, group=b"e" * 16), rows(model, 20, group=b"k" * 16)
    append(store, erased + kept)
    done = swap(store, model, erased[0].id)
    counted = figures_of(store, done)
    assert (counted.counts.predictions, counted.groups, counted.gone) == (40, 2, None)
    store.swaps.record(done.id, counted, is_final=False)
    assert figures_of(store, done).gone == 0
    store.erasure.erase([b"e" * 16], actor="tests")
    found = store.affected.most_costly(store.affected.period(done))
    assert {one.group_hash for one in found.predictions} == {b"k" * 16}
    assert (found.figures.counts.predictions, found.figures.groups, found.figures.gone) == (20, 1, 20)
    # What was counted again remembers what was gone before, and late predictions do not hide it.
    store.swaps.record(done.id, found.figures, is_final=True)
    append(store, rows(model, 5))
    assert figures_of(store, done).gone == 20


def test_what_retention_deleted_is_said_to_be_gone(store: Store, model: Model) -> None:
    old = append(store, rows(model, 20, ago=timedelta(days=3)))
    append(store, rows(model, 10))
    done = swap(store, model, old[0].id)
    store.swaps.record(done.id, figures_of(store, done), is_final=True)
    store.retention.delete_expired(lambda _: 1, datetime.now(UTC).date())
    figures = figures_of(store, done)
    assert (figures.counts.predictions, figures.gone) == (10, 20)


@sqlite_only
def test_predictions_that_are_deleted_while_the_list_is_read_are_left_out(store: Store, model: Model) -> None:
    logged = append(store, rows(model, 20, group=b"e" * 16) + rows(model, 20))
    done = swap(store, model, logged[0].id)
    found = store.affected.most_costly(store.affected.period(done))
    store.erasure.erase([b"e" * 16], actor="tests")
    assert {one.group_hash for one in found.predictions} == {None}


def test_known_labels_are_in_the_list(store: Store, model: Model) -> None:
    logged = append(store, rows(model, 20))
    store.labels.record([NewLabel(logged[3].id, 2)])
    done = swap(store, model, logged[0].id)
    labels = {
        one.id: one.label for one in store.affected.most_costly(store.affected.period(done)).predictions
    }
    labels.setdefault(logged[3].id, 2)
    assert {one for one, label in labels.items() if label is not None} == {logged[3].id}


@sqlite_only
def test_a_swap_is_counted_until_it_is_final(store: Store, model: Model) -> None:
    logged = append(store, rows(model, 20))
    done = swap(store, model, logged[0].id)
    (uncounted,) = store.swaps.uncounted()
    period = store.affected.period(done)
    assert (uncounted.cycle_id, uncounted.activated_at) == (done.id, period.activated_at)
    assert not uncounted.is_counted
    assert store.swaps.figures([done.id]) == {}
    activation = store.heads.activations(model.reference, environment=SITE)[-1]
    head = model.id, done.published_version or 0
    assert store.swaps.of_activation(*head, activation.activated_at) is None
    figures = figures_of(store, done)
    store.swaps.record(done.id, figures, is_final=False)
    assert [one.is_counted for one in store.swaps.uncounted()] == [True]
    assert store.swaps.figures([done.id, new_prediction_id()]) == {done.id: figures}
    assert store.swaps.of_activation(*head, activation.activated_at) == figures
    assert store.swaps.of_activation(*head, activation.activated_at + LATE) is None
    assert store.swaps.of_activation(model.id, 1, activation.activated_at) is None
    store.swaps.record(done.id, None, is_final=True)
    assert store.swaps.uncounted() == []
    assert store.swaps.figures([done.id]) == {done.id: figures}


@sqlite_only
def test_a_swap_that_was_refused_is_not_noted(store: Store, model: Model) -> None:
    done = swap(store, model, new_prediction_id())
    with pytest.raises(ConflictError):
        store.cycles.finish(replace(done, id=new_prediction_id()), candidate=NEW_HEAD, expected_sequence=None)
    assert [one.cycle_id for one in store.swaps.uncounted()] == [done.id]


@given(
    costs=st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.5]), max_size=40),
    limit=st.one_of(st.none(), st.integers(1, 50)),
    behind=st.integers(0, 39),
    block=st.integers(1, 10),
)
def test_a_ranking_keeps_the_most_costly(
    costs: list[float], limit: int | None, behind: int, block: int
) -> None:
    from lifelong_core.store.cycles import affected_ranking

    ids = [new_prediction_id() for _ in costs]
    expected = sorted(zip(costs, ids, strict=True), key=lambda pair: (-pair[0], pair[1]))
    after = RankPosition(*expected[behind]) if behind < len(expected) else None
    if after is not None:
        expected = expected[behind + 1 :]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(affected_ranking, "_SPARE", 3)
        ranking = Ranking(limit, after)
        for start in range(0, len(ids), block):
            part = slice(start, start + block)
            ranking.add(ids[part], np.array(costs[part]), np.arange(len(ids))[part])
    assert [(one.position.cost, one.position.id) for one in ranking] == expected[:limit]
    assert [ids[one.new_decision] for one in ranking] == [one.position.id for one in ranking]
    assert ranking.has_more is (limit is not None and len(expected) > limit)


@pytest.mark.parametrize("text", ["", "1.5", "nan:0199f0a1-0000-7000-8000-000000000000", "x:y", "1:2:3"])
def test_a_position_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        RankPosition.parse(text, field="after")
    assert refused.value.field == "after"
