import math
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from lifelong_core.configuration.policy_fields import Mode
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import Cycle, Model, Store, new_prediction_id, register_calibration
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.samples import COSTS, add_model, add_serving_model, calibration, cycle, head

SITE = "site-a"
DUE = datetime(2026, 1, 1, tzinfo=UTC)


@sqlite_only
def test_a_cycle_that_keeps_is_recorded_and_changes_nothing_else(store: Store):
    model, _ = add_serving_model(store)
    before = (store.registry(), store.audit.list())
    recorded = store.cycles.finish(cycle(model), candidate=None, expected_sequence=None)
    assert recorded.published_version is None
    assert store.cycles.get(recorded.id) == recorded == store.cycles.last(model.id, SITE)
    assert (store.registry(), store.audit.list()) == before


def test_a_cycle_that_swaps_publishes_its_candidate_for_its_environment(store: Store):
    model, first = add_serving_model(store)
    recorded = store.cycles.finish(cycle(model, outcome="swap"), candidate=head(1), expected_sequence=0)
    assert recorded.published_version == 2
    assert store.cycles.last(model.id, SITE) == recorded
    registry = store.registry()
    assert registry is not None
    assert registry.head_for(model, SITE).head == head(1)
    assert registry.head_for(model, "default") == first
    (activation,) = store.heads.activations("dermatology", environment=SITE)
    assert (activation.reason, activation.activated_by, activation.head_version) == ("swap", "monitor", 2)
    entry = store.audit.list(limit=1)[0]
    assert (entry.action, entry.actor, entry.subject) == ("heads.swap", "monitor", "dermatology@1/site-a")
    assert store.heads.rollback("dermatology", environment=SITE, actor="ann") == first


def test_a_cycle_runs_once_for_each_time_it_is_due(store: Store):
    model, _ = add_serving_model(store)
    first = store.cycles.finish(cycle(model, due_at=DUE), candidate=None, expected_sequence=None)
    again = cycle(model, due_at=DUE, outcome="swap")
    with pytest.raises(ConflictError, match="has run"):
        store.cycles.finish(again, candidate=head(1), expected_sequence=0)
    assert store.cycles.list() == [first]
    assert len(store.heads.list("dermatology")) == 1
    store.cycles.finish(
        cycle(model, due_at=DUE + timedelta(microseconds=1)), candidate=None, expected_sequence=None
    )
    store.cycles.finish(
        replace(cycle(model, due_at=DUE), environment="b"), candidate=None, expected_sequence=None
    )


@pytest.mark.parametrize("outcome", ["keep", "swap"])
def test_of_monitors_that_finish_the_same_cycle_one_records_it(store: Store, outcome: str):
    model, _ = add_serving_model(store)
    start = threading.Barrier(4)
    recorded: list[int | None] = []
    refused: list[ConflictError] = []

    def work() -> None:
        mine = replace(cycle(model, outcome=outcome), id=new_prediction_id())
        candidate = head(1) if outcome == "swap" else None
        start.wait()
        try:
            recorded.append(
                store.cycles.finish(mine, candidate=candidate, expected_sequence=0).published_version
            )
        except ConflictError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorded == [2 if outcome == "swap" else None]
    assert len(refused) == 3
    assert len(store.cycles.list()) == 1
    assert len(store.heads.list("dermatology")) == (2 if outcome == "swap" else 1)


@pytest.mark.parametrize("expected_sequence", [None, 0])
@pytest.mark.parametrize("changed", ["site-a", None])
def test_a_head_that_changed_meanwhile_stops_the_swap(
    store: Store, changed: str | None, expected_sequence: int | None
):
    """Whether a person gave the environment its own head, or the model another default head."""
    model, _ = add_serving_model(store)
    store.heads.publish("dermatology", head(5), environment=changed, actor="ann")
    before = (store.registry(), store.audit.list())
    with pytest.raises(ConflictError):
        store.cycles.finish(
            cycle(model, outcome="swap", head_version=1),
            candidate=head(1),
            expected_sequence=expected_sequence,
        )
    assert (store.registry(), store.audit.list(), store.cycles.list()) == (*before, [])


@sqlite_only
def test_a_swap_is_refused_by_the_sequence_although_the_same_head_serves_again(store: Store):
    model, _ = add_serving_model(store)
    store.heads.publish("dermatology", head(5), environment=SITE, actor="ann")
    store.heads.rollback("dermatology", environment=SITE, actor="ann")
    mine = cycle(model, outcome="swap", head_version=1)
    with pytest.raises(ConflictError, match="activation 2, expected 0"):
        store.cycles.finish(mine, candidate=head(1), expected_sequence=0)
    assert store.cycles.finish(mine, candidate=head(1), expected_sequence=2).published_version == 3


@sqlite_only
def test_outcome_and_candidate_must_agree(store: Store):
    model, _ = add_serving_model(store)
    for outcome, candidate in (("swap", None), ("keep", head(1)), ("refuse", head(1))):
        with pytest.raises(InvalidInputError, match=outcome):
            store.cycles.finish(cycle(model, outcome=outcome), candidate=candidate, expected_sequence=None)
    assert store.cycles.list() == []


@sqlite_only
def test_a_candidate_that_does_not_fit_leaves_no_cycle(store: Store):
    model, _ = add_serving_model(store)
    wider = PostProcessingHead(
        1.0, [0, 0, 0], np.hstack([COSTS, COSTS[:, :1]]), [1, 0, 0], head().class_names
    )
    with pytest.raises(InvalidInputError, match="shape"):
        store.cycles.finish(cycle(model, outcome="swap"), candidate=wider, expected_sequence=None)
    assert store.cycles.list() == []


def propose(
    store: Store,
    model: Model,
    *,
    due_at: datetime = DUE,
    log_position: int = 17,
    bias: float = 1,
    head_version: int = 1,
) -> Cycle:
    return store.cycles.finish(
        replace(
            cycle(model, due_at=due_at, outcome="swap", head_version=head_version), log_position=log_position
        ),
        candidate=head(bias),
        expected_sequence=0,
        mode="propose",
    )


@sqlite_only
@pytest.mark.parametrize(("mode", "proposal"), [("propose", head(1)), ("shadow", None)])
def test_a_cycle_that_must_not_publish_changes_no_head(
    store: Store, mode: Mode, proposal: PostProcessingHead | None
):
    model, _ = add_serving_model(store)
    before = (store.registry(), store.audit.list())
    mine = cycle(model, outcome="swap")
    recorded = store.cycles.finish(mine, candidate=head(1), expected_sequence=0, mode=mode)
    assert (recorded.published_version, recorded.proposal) == (None, proposal)
    assert store.cycles.get(recorded.id) == recorded
    assert (store.registry(), store.audit.list()) == before
    assert store.cycles.proposals() == ([recorded] if proposal else [])


@sqlite_only
def test_an_approved_proposal_is_published_to_the_letter_in_the_name_of_who_approved(store: Store):
    model, _ = add_serving_model(store)
    proposal = replace(head(1), provenance={"cycle": "c"})
    proposed = store.cycles.finish(
        cycle(model, outcome="swap"), candidate=proposal, expected_sequence=0, mode="propose"
    )
    approved = store.cycles.approve(proposed.id, actor="ann")
    assert approved == replace(proposed, published_version=2) == store.cycles.get(proposed.id)
    assert store.heads.get("dermatology", 2).head.to_json() == proposal.to_json()
    registry = store.registry()
    assert registry is not None
    assert registry.head_for(model, SITE).version == 2
    assert registry.head_for(model, "default").version == 1
    (activation,) = store.heads.activations("dermatology", environment=SITE)
    assert (activation.reason, activation.activated_by) == ("swap", "ann")
    entry = store.audit.list(limit=1)[0]
    assert (entry.actor, entry.action, entry.subject) == ("ann", "cycles.approve", "dermatology@1/site-a")
    assert entry.details == {"cycle": str(proposed.id), "version": 2}
    assert store.cycles.proposals() == []
    assert store.heads.rollback("dermatology", environment=SITE, actor="ann").version == 1


def _approve_twice(store: Store, proposed: Cycle, model: Model) -> None:
    store.cycles.approve(proposed.id, actor="ann")


def _reject(store: Store, proposed: Cycle, model: Model) -> None:
    store.cycles.reject(proposed.id, reason="the scanner is being tested", actor="bob")


def _judge_again(store: Store, proposed: Cycle, model: Model) -> None:
    newer = cycle(model, due_at=DUE + timedelta(hours=1))
    store.cycles.finish(newer, candidate=None, expected_sequence=None)


def _publish_there(store: Store, proposed: Cycle, model: Model) -> None:
    store.heads.publish("dermatology", head(5), environment=SITE, actor="bob")


def _publish_default(store: Store, proposed: Cycle, model: Model) -> None:
    store.heads.publish("dermatology", head(5), environment=None, actor="bob")


def _pin_there(store: Store, proposed: Cycle, model: Model) -> None:
    store.environments.ensure(SITE, limit=9)
    store.heads.pin("dermatology", environment=SITE, reason="trial", actor="bob")


@sqlite_only
@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (_approve_twice, "approved already: it is head 2"),
        (_reject, r"rejected by bob at 20\d\d-.*: 'the scanner is being tested'"),
        (_judge_again, "newer cycle"),
        (_publish_there, "head 2 of dermatology@1 serves site-a by now, not head 1"),
        (_publish_default, "head 2 of dermatology@1 serves site-a by now, not head 1"),
        (_pin_there, "pinned by bob: 'trial'"),
    ],
)
def test_a_proposal_that_was_answered_or_overtaken_cannot_be_approved(store: Store, happens: Any, why: str):
    model, _ = add_serving_model(store)
    proposed = propose(store, model)
    happens(store, proposed, model)
    before = (store.registry(), store.audit.list(), store.cycles.list())
    assert store.cycles.proposals() == []
    with pytest.raises(ConflictError, match=why):
        store.cycles.approve(proposed.id, actor="ann")
    with pytest.raises(ConflictError, match=why):
        store.cycles.reject(proposed.id, reason="too late", actor="ann")
    assert (store.registry(), store.audit.list(), store.cycles.list()) == before


@sqlite_only
@pytest.mark.parametrize(("outcome", "mode"), [("keep", "propose"), ("swap", "shadow"), ("swap", "auto")])
def test_a_cycle_without_a_proposal_cannot_be_approved(store: Store, outcome: str, mode: Mode):
    model, _ = add_serving_model(store)
    candidate = head(1) if outcome == "swap" else None
    recorded = store.cycles.finish(
        cycle(model, outcome=outcome), candidate=candidate, expected_sequence=0, mode=mode
    )
    with pytest.raises(ConflictError, match="proposed no head"):
        store.cycles.approve(recorded.id, actor="ann")
    with pytest.raises(ConflictError, match="proposed no head"):
        store.cycles.reject(recorded.id, reason="no", actor="ann")
    with pytest.raises(NotFoundError):
        store.cycles.approve(new_prediction_id(), actor="ann")


@sqlite_only
def test_a_rejected_proposal_says_who_rejected_it_when_and_why(store: Store):
    model, _ = add_serving_model(store)
    proposed = propose(store, model)
    before = datetime.now(UTC)
    rejected = store.cycles.reject(proposed.id, reason="the scanner is being tested", actor="bob")
    assert rejected.rejection is not None
    assert (rejected.rejection.reason, rejected.rejection.rejected_by) == (
        "the scanner is being tested",
        "bob",
    )
    assert before <= rejected.rejection.rejected_at <= datetime.now(UTC)
    assert store.cycles.get(proposed.id) == rejected == store.cycles.last(model.id, SITE)
    assert replace(rejected, rejection=None) == proposed
    entry = store.audit.list(limit=1)[0]
    assert (entry.action, entry.actor, entry.subject) == ("cycles.reject", "bob", "dermatology@1/site-a")
    assert entry.details == {"cycle": str(proposed.id), "reason": "the scanner is being tested"}
    assert len(store.heads.list("dermatology")) == 1


def test_rejections_are_found_by_place_head_and_time(store: Store):
    model, _ = add_serving_model(store)
    rejected = store.cycles.reject(propose(store, model).id, reason="no", actor="bob")
    assert rejected.rejection is not None
    at = rejected.rejection.rejected_at
    assert store.cycles.list_rejected(model.id, SITE, head_version=1, since=at) == [rejected]
    assert store.cycles.list_rejected(model.id, SITE, head_version=2, since=at) == []
    assert store.cycles.list_rejected(model.id, "site-b", head_version=1, since=at) == []
    assert (
        store.cycles.list_rejected(model.id, SITE, head_version=1, since=at + timedelta(microseconds=1)) == []
    )


@sqlite_only
@pytest.mark.parametrize("reason", ["", "  ", "a" * 201, "two\nlines"])
def test_a_rejection_needs_a_reason(store: Store, reason: str):
    model, _ = add_serving_model(store)
    proposed = propose(store, model)
    with pytest.raises(InvalidInputError) as refused:
        store.cycles.reject(proposed.id, reason=reason, actor="bob")
    assert refused.value.field == "reason"
    assert store.cycles.proposals() == [proposed]


def test_of_those_who_approve_at_once_one_publishes(store: Store):
    model, _ = add_serving_model(store)
    proposed = propose(store, model)
    start = threading.Barrier(4)
    refused: list[ConflictError] = []

    def work() -> None:
        start.wait()
        try:
            store.cycles.approve(proposed.id, actor="ann")
        except ConflictError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert [record.version for record in store.heads.list("dermatology")] == [1, 2]


@sqlite_only
def test_open_proposals_are_listed_by_place(store: Store):
    model, _ = add_serving_model(store)
    other = register_calibration(store, add_model(store, "other").reference, calibration(), actor="tests")
    first = propose(store, model)
    second = store.cycles.finish(
        replace(cycle(model, due_at=DUE + timedelta(hours=1), outcome="swap"), environment="site-b"),
        candidate=head(2),
        expected_sequence=0,
        mode="propose",
    )
    elsewhere = store.cycles.finish(
        replace(cycle(model, outcome="swap"), model_id=other.model_id),
        candidate=head(3),
        expected_sequence=0,
        mode="propose",
    )
    assert store.cycles.proposals() == [second, elsewhere, first]
    assert store.cycles.proposals(model.id) == [second, first]
    assert store.cycles.proposals(environment=SITE) == [elsewhere, first]
    assert store.cycles.proposals(model.id, "site-b") == [second]
    store.cycles.approve(first.id, actor="ann")
    assert store.cycles.proposals() == [second, elsewhere]


def test_the_cycle_that_read_furthest_is_found_whatever_the_clocks_said(store: Store):
    model, _ = add_serving_model(store)
    assert store.cycles.last(model.id, SITE) is None
    ahead = store.cycles.finish(
        replace(cycle(model, due_at=DUE + timedelta(days=9)), log_position=20),
        candidate=None,
        expected_sequence=None,
    )
    furthest = store.cycles.finish(
        replace(cycle(model), log_position=30), candidate=None, expected_sequence=None
    )
    store.cycles.finish(
        replace(cycle(model), log_position=40, environment="site-b"), candidate=None, expected_sequence=None
    )
    assert store.cycles.last(model.id, SITE) == furthest
    assert store.cycles.list(model.id, SITE) == [furthest, ahead]
    assert store.cycles.list(limit=2)[1:] == [furthest]


@sqlite_only
def test_proposals_need_not_wait_for_the_date_of_a_clock_that_was_ahead(store: Store):
    model, _ = add_serving_model(store)
    ahead = propose(store, model, due_at=DUE + timedelta(days=2000), log_position=20)
    assert store.cycles.proposals() == [ahead]
    proposed = propose(store, model, log_position=30)
    assert store.cycles.proposals() == store.cycles.proposals(model.id, SITE) == [proposed]
    with pytest.raises(ConflictError, match="newer cycle"):
        store.cycles.approve(ahead.id, actor="ann")
    assert store.cycles.approve(proposed.id, actor="ann").published_version == 2


@pytest.mark.parametrize("value", [math.nan, -math.inf, np.float32(1)])
def test_a_report_that_no_answer_could_hold_is_refused_by_both_databases(store: Store, value: Any):
    model, _ = add_serving_model(store)
    odd = replace(cycle(model), report={"statistic": value})
    with pytest.raises(InvalidInputError) as refused:
        store.cycles.finish(odd, candidate=None, expected_sequence=None)
    assert refused.value.field == "report"
    assert store.cycles.list() == []


@sqlite_only
def test_a_cycle_of_an_unknown_model_is_not_found(store: Store):
    model, _ = add_serving_model(store)
    with pytest.raises(NotFoundError):
        store.cycles.finish(replace(cycle(model), model_id=99), candidate=None, expected_sequence=None)
    with pytest.raises(NotFoundError):
        store.cycles.get(new_prediction_id())


def test_cycles_are_listed_newest_first_and_by_population(store: Store):
    model, _ = add_serving_model(store)
    cycles = [
        store.cycles.finish(
            replace(cycle(model, due_at=DUE + timedelta(hours=index)), environment=f"site-{index % 2}"),
            candidate=None,
            expected_sequence=None,
        )
        for index in range(5)
    ]
    assert store.cycles.list() == cycles[::-1]
    assert store.cycles.list(model.id, "site-1") == [cycles[3], cycles[1]]
    assert store.cycles.list(environment="site-0", limit=2) == [cycles[4], cycles[2]]
    assert store.cycles.list(model.id + 1) == []
    assert store.cycles.last(model.id, "site-1") == cycles[3]
    assert store.cycles.last(model.id, "site-2") is None


def test_older_cycles_follow_a_cycle_in_the_list(store: Store):
    model, _ = add_serving_model(store)
    hours = [DUE + timedelta(hours=hour) for hour in range(4)]
    made = [
        store.cycles.finish(
            replace(cycle(model, due_at=due), log_position=position), candidate=None, expected_sequence=None
        )
        for due, position in zip(hours, (3, 3, 2, 5), strict=True)
    ]
    newest_first = [made[3], made[1], made[0], made[2]]
    assert store.cycles.list() == newest_first
    for place, before in enumerate(newest_first):
        assert store.cycles.list(before=before) == newest_first[place + 1 :]
    assert store.cycles.list(model.id, SITE, 1, before=made[3]) == [made[1]]
    finished = {one.id: one.finished_at for one in newest_first[:2]}
    assert list(store.cycles.finished(model.id, SITE, limit=2).items()) == list(finished.items())
    assert store.cycles.finished(model.id, "elsewhere", limit=2) == {}
