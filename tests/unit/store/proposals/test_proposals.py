"""Proposals of retrainings: one at a time for a reason, and not again before it was gone."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from lifelong_core.deploy.adaptation.retraining import MissedThreshold, RetrainingNeed, RetrainingReason
from lifelong_core.operations.proposals import proposal_answers
from lifelong_core.store import RetrainingProposal, Store, new_prediction_id
from lifelong_core.store.proposals.acceptance import start_retraining
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.at_once import at_once
from tests.unit.store.samples import add_model

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PLACE = "clinic"


def need(reason: RetrainingReason = "estimated_performance", value: float = 0.7) -> RetrainingNeed:
    missed = MissedThreshold("AC", None, value, value - 0.05, value + 0.05, 0.8)
    return RetrainingNeed(reason, (missed,), NOW, ("a", "b"))


def model_id(store: Store, name: str = "dermatology") -> int:
    return store.models.get(f"{name}@1").id


def proposed(store: Store, environment: str = PLACE, **of: RetrainingReason) -> RetrainingProposal:
    proposal = store.proposals.propose(model_id(store), environment, need(**of))
    assert proposal is not None
    return proposal


def test_a_proposal_keeps_what_the_monitor_saw(store: Store) -> None:
    model = add_model(store)
    proposal = proposed(store)
    assert store.proposals.get(proposal.id) == proposal
    assert (proposal.model_id, proposal.environment, proposal.state) == (model.id, PLACE, "open")
    assert proposal.details == need().to_document()
    (answer,) = proposal_answers(store, [proposal])
    assert (answer.task, answer.model, answer.job) == ("lesions", "dermatology@1", None)
    entry = store.audit.list(action="proposals.propose", limit=1)[0]
    assert (entry.actor, entry.subject, entry.details["id"]) == (
        "monitor",
        "dermatology@1/clinic",
        str(proposal.id),
    )


def test_a_reason_is_open_once(store: Store) -> None:
    add_model(store)
    first = proposed(store)
    assert store.proposals.propose(model_id(store), PLACE, need(value=0.6)) is None
    others = [proposed(store, reason="repeated_refusals"), proposed(store, "ward")]
    assert store.proposals.list() == [others[1], others[0], first]
    assert store.proposals.held_back(model_id(store), PLACE) == {"estimated_performance", "repeated_refusals"}
    assert store.proposals.count_open() == {
        ("lesions", PLACE, "estimated_performance"): 1,
        ("lesions", PLACE, "repeated_refusals"): 1,
        ("lesions", "ward", "estimated_performance"): 1,
    }


@sqlite_only
@pytest.mark.parametrize(("decision", "state"), [("accept", "accepted"), ("dismiss", "dismissed")])
def test_a_closed_reason_comes_back_only_after_it_was_gone(store: Store, decision: str, state: str) -> None:
    add_model(store)
    first = proposed(store)
    if decision == "accept":
        closed = store.proposals.accept(first.id, job_id=new_prediction_id(), actor="ann")
        assert closed.job_id is not None
    else:
        closed = store.proposals.dismiss(first.id, reason="the camera is broken", actor="ann")
        assert closed.decision_reason == "the camera is broken"
    assert (closed.decided_by, closed.state) == ("ann", state)
    assert store.proposals.propose(model_id(store), PLACE, need()) is None
    store.proposals.note_fine(model_id(store), PLACE, "estimated_performance", NOW)
    assert store.proposals.get(first.id).fine_at == NOW
    assert proposed(store).id > first.id
    entry = store.audit.list(action=f"proposals.{decision}", limit=1)[0]
    assert (entry.actor, entry.details["reason"]) == ("ann", "estimated_performance")


@sqlite_only
def test_a_reason_that_comes_back_renews_its_open_proposal(store: Store) -> None:
    add_model(store)
    first = proposed(store)
    store.proposals.note_fine(model_id(store), PLACE, "estimated_performance", NOW)
    store.proposals.note_fine(model_id(store), PLACE, "estimated_performance", NOW + timedelta(hours=1))
    assert store.proposals.get(first.id).fine_at == NOW
    assert store.proposals.held_back(model_id(store), PLACE) == frozenset()
    assert store.proposals.propose(model_id(store), PLACE, need(value=0.5)) is None
    renewed = store.proposals.get(first.id)
    assert (renewed.fine_at, renewed.details) == (None, need(value=0.5).to_document())


@sqlite_only
def test_what_was_never_proposed_has_nothing_to_end(store: Store) -> None:
    add_model(store)
    store.proposals.note_fine(model_id(store), PLACE, "realised_performance", NOW)
    assert store.proposals.list() == []


@sqlite_only
def test_a_proposal_is_decided_once(store: Store) -> None:
    add_model(store)
    proposal = proposed(store)
    store.proposals.dismiss(proposal.id, reason="no", actor="ann")
    for decide in (
        lambda: store.proposals.accept(proposal.id, job_id=None, actor="bob"),
        lambda: store.proposals.dismiss(proposal.id, reason="no", actor="bob"),
    ):
        with pytest.raises(ConflictError, match="dismissed by ann"):
            decide()
    assert store.proposals.count_open() == {}


@sqlite_only
@pytest.mark.parametrize("reason", ["", "x" * 201, "a\nb"])
def test_a_dismissal_needs_a_reason(store: Store, reason: str) -> None:
    add_model(store)
    proposal = proposed(store)
    with pytest.raises(InvalidInputError, match="1 to 200"):
        store.proposals.dismiss(proposal.id, reason=reason, actor="ann")
    assert store.proposals.get(proposal.id).state == "open"


def test_proposals_are_selected(store: Store) -> None:
    add_model(store)
    add_model(store, "other", "teeth")
    first = proposed(store)
    second = store.proposals.propose(model_id(store, "other"), "ward", need("repeated_refusals"))
    dismissed = store.proposals.dismiss(first.id, reason="no", actor="ann")
    listed = store.proposals.list
    assert listed(task="teeth") == listed(state="open") == listed(reason="repeated_refusals") == [second]
    assert listed(task="lesions") == listed(state="dismissed") == listed(environment=PLACE) == [dismissed]
    assert listed(limit=1) == [second]
    assert listed(state="accepted") == listed(task="teeth", environment=PLACE) == []


def test_a_proposal_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    add_model(store)
    first, second = proposed(store), proposed(store, "ward")
    assert store.proposals.find(str(first.id)) == first
    assert store.proposals.find(second.id.hex.upper()) == second
    with pytest.raises(InvalidInputError, match="several"):
        store.proposals.find("0")
    for unknown in ("ff", str(new_prediction_id())):
        with pytest.raises(NotFoundError, match="lifelong proposals list"):
            store.proposals.find(unknown)
    with pytest.raises(InvalidInputError, match="neither"):
        store.proposals.find("x")
    with pytest.raises(NotFoundError):
        store.proposals.get(new_prediction_id())


def test_of_several_monitors_one_proposes(store: Store, artifacts_url: str) -> None:
    add_model(store)
    for closed in (False, True):
        if closed:
            store.proposals.dismiss(store.proposals.list()[0].id, reason="no", actor="ann")
            store.proposals.note_fine(model_id(store), PLACE, "estimated_performance", NOW)
        steps = [lambda own: own.proposals.propose(model_id(own), PLACE, need())] * 4
        outcomes = at_once(store, artifacts_url, *steps)
        assert len([one for one in outcomes if one is not None]) == 1
    assert len(store.proposals.list(state="open")) == 1


def test_a_proposal_that_is_accepted_many_times_at_once_starts_one_retraining(
    store: Store, artifacts_url: str
) -> None:
    add_model(store)
    proposal = proposed(store)

    def accept(store: Store, number: int) -> RetrainingProposal:
        payload = {"task": "lesions", "level": number}  # no two are the same job
        return start_retraining(store, proposal.id, payload, actor="ann")[1]

    outcomes = at_once(store, artifacts_url, *(partial(accept, number=number) for number in range(20)))
    (job,) = store.jobs.list()
    accepted = store.proposals.get(proposal.id)
    assert accepted.job_id == job.id
    assert outcomes.count(accepted) == 1
    assert sum("was accepted by ann" in str(outcome) for outcome in outcomes) == 19
