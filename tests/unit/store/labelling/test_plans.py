"""Plans keep the probability of each chosen prediction until its label arrives, and no longer than the prediction."""

import csv
import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.labelling import PlanProgress
from lifelong_core.operations.labelling_plans import COLUMNS, ShowPlan, labels_to_get, plan_csv, show_plan
from lifelong_core.operations.operation import Context
from lifelong_core.store import LogEntry, NewLabel, Store, new_prediction_id
from lifelong_core.store.labelling import plans as module
from lifelong_core.store.labelling.samples import planned_propensities
from lifelong_core.store.lifecycle import erasure
from lifelong_core.store.log.identifiers import shadow_prediction_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, NotFoundError, PayloadTooLargeError
from tests.databases import sqlite_only
from tests.unit.store.labelling_samples import WIDTHS, add_plan, logged, new_plan, sample
from tests.unit.store.samples import add_model, add_serving_model, prediction


def propensities(store: Store, *ids: object) -> dict[object, float]:
    with store.database.read() as connection:
        return planned_propensities(connection, list(ids))  # type: ignore[arg-type, return-value]


def stored_samples(store: Store) -> int:
    query = sa.select(sa.func.count()).select_from(tables.labelling_samples)
    with store.database.read() as connection:
        return connection.execute(query).scalar_one()


def test_a_plan_is_read_as_it_was_stored(store: Store):
    model = add_model(store)
    rows = logged(store, 6, model.id)
    new = new_plan(rows)
    samples = [sample(rows[4], 0, 0.5), sample(rows[1], 1, 0.125), sample(rows[2], None, 1.0)]
    plan = store.labelling_plans.add(new, samples, actor="anna")
    assert {name: getattr(plan, name) for name in vars(new)} == vars(new)
    assert (plan.size, plan.labelled_before, plan.created_by, plan.estimate) == (2, 1, "anna", None)
    assert store.labelling_plans.get(plan.id) == plan
    chosen = store.labelling_plans.chosen(plan.id)
    assert [(one.prediction_id, one.propensity, one.decision) for one in chosen] == [
        (rows[4].id, 0.5, rows[4].decision),
        (rows[1].id, 0.125, rows[1].decision),
    ]
    (before,) = store.labelling_plans.labelled_before(plan.id)
    assert (before.prediction_id, before.position, before.propensity) == (rows[2].id, None, 1.0)
    (entry,) = store.audit.list(1)
    assert (entry.actor, entry.action, entry.subject) == ("anna", "labelling.plan", "dermatology@1/site-a")
    assert entry.details == {"id": str(plan.id), "size": 2, "window_samples": 6}


@sqlite_only
def test_an_unknown_plan_is_an_error_that_names_the_field(store: Store):
    with pytest.raises(NotFoundError) as missing:
        store.labelling_plans.get(new_prediction_id())
    assert missing.value.field == "plan"
    assert store.labelling_plans.newest(1, "site-a") is None


def test_the_newest_plan_of_a_population_comes_first(store: Store):
    model = add_model(store)
    rows = logged(store, 3, model.id)
    older, newer = (add_plan(store, rows, chosen=[0]) for _ in range(2))
    elsewhere = add_plan(store, rows, chosen=[0], environment="site-b")
    assert store.labelling_plans.list(model.id, "site-a") == [newer, older]
    assert store.labelling_plans.newest(model.id, "site-a") == newer
    assert store.labelling_plans.list(limit=2) == [elsewhere, newer]
    assert store.labelling_plans.list(newest_only=True) == [elsewhere, newer]
    assert store.labelling_plans.list(newest_only=True, limit=1) == [elsewhere]


def test_progress_counts_the_labels_of_chosen_predictions_only(store: Store):
    model = add_model(store)
    rows = logged(store, 6, model.id)
    plan, other = add_plan(store, rows, chosen=[3, 1, 0], labelled=[5]), add_plan(store, rows, chosen=[2])
    store.labels.record([NewLabel(rows[1].id, 2), NewLabel(rows[5].id, 0), NewLabel(rows[4].id, 0)])
    assert store.labelling_plans.progress([plan.id, other.id]) == {
        plan.id: PlanProgress(3, 1),
        other.id: PlanProgress(1, 0),
    }
    assert [one.label for one in store.labelling_plans.chosen(plan.id)] == [None, 2, None]
    assert [one.label for one in store.labelling_plans.labelled_before(plan.id)] == [0]


def test_the_propensity_of_a_prediction_is_that_of_the_newest_plan_that_chose_it(store: Store):
    model = add_model(store)
    rows = logged(store, 4, model.id)
    add_plan(store, rows, chosen=[0, 1], propensity=0.25)
    add_plan(store, rows, chosen=[1], labelled=[0], propensity=0.75)
    write = new_plan(rows)
    found = propensities(store, *(row.id for row in rows))
    assert found == {rows[0].id: 0.25, rows[1].id: 0.75}
    # Rows of a plan that was never completed have no effect.
    with store.database.write() as connection:
        values = sa.select(*_all_but_plan(), sa.literal(write.id, _plan_id().type)).where(
            tables.labelling_samples.c.prediction_id == rows[0].id, tables.labelling_samples.c.position == 0
        )
        columns = [column.name for column in _all_but_plan()]
        connection.execute(sa.insert(tables.labelling_samples).from_select([*columns, "plan_id"], values))
    assert propensities(store, rows[0].id) == {rows[0].id: 0.25}


def _plan_id() -> sa.Column[object]:
    return tables.labelling_samples.c.plan_id


def _all_but_plan() -> list[sa.Column[object]]:
    return [column for column in tables.labelling_samples.c if column is not _plan_id()]


@sqlite_only
def test_a_first_label_gets_the_propensity_of_its_plan(store: Store):
    model = add_model(store)
    rows = logged(store, 5, model.id)
    store.labels.record([NewLabel(rows[3].id, 0)])
    add_plan(store, rows, chosen=[0, 1, 2], labelled=[3])
    labels = [NewLabel(rows[0].id, 1), NewLabel(rows[1].id, 1, propensity=0.5), NewLabel(rows[4].id, 1)]
    assert store.labels.record([*labels, NewLabel(rows[3].id, 2)]) == ("stored",) * 3 + ("corrected",)
    # A repetition, and a correction, leave it as it is.
    assert store.labels.record([NewLabel(rows[0].id, 1), NewLabel(rows[1].id, 2)]) == (
        "unchanged",
        "corrected",
    )
    found = store.labels.newest_labelled(model.id, "site-a", limit=10, classes=3)
    assert found.propensities is not None
    assert found.ids == tuple(rows[index].id for index in (0, 1, 3, 4))
    assert np.array_equal(found.propensities, [0.25, 0.5, np.nan, np.nan], equal_nan=True)
    assert [one.propensity for one in store.labels.history(rows[0].id)] == [0.25]


@sqlite_only
def test_the_label_of_a_shadow_has_the_propensity_of_the_served_prediction(store: Store):
    model = add_model(store)
    (row,) = logged(store, 1, model.id)
    shadow = prediction(model.id + 1, "site-a", prediction_id=shadow_prediction_id(row.id))
    store.predictions.append([LogEntry((shadow,))])
    add_plan(store, [row], chosen=[0])
    store.labels.record([NewLabel(row.id, 1)])
    found = store.labels.newest_labelled(model.id + 1, "site-a", limit=1, classes=3)
    assert found.propensities is not None
    assert found.propensities.tolist() == [0.25]


def test_a_repeated_job_replaces_a_plan_that_was_not_completed_but_no_complete_one(store: Store):
    model = add_model(store)
    rows = logged(store, 3, model.id)
    too_large = replace(new_plan(rows), expected_widths={"text": "x" * module.LARGEST_DOCUMENT})
    with pytest.raises(PayloadTooLargeError):
        store.labelling_plans.add(too_large, [sample(rows[0], 0)], actor="tests")
    assert stored_samples(store) == 0
    plan = add_plan(store, rows, chosen=[1], id=too_large.id)
    with pytest.raises(ConflictError):
        add_plan(store, rows, chosen=[2], id=plan.id)


@sqlite_only
def test_only_the_newest_plans_of_a_population_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "KEPT", 2)
    model = add_model(store)
    rows = logged(store, 4, model.id)
    elsewhere = add_plan(store, rows, chosen=[0], environment="site-b")
    oldest, *kept = [add_plan(store, rows, chosen=[0, 1, 2]) for _ in range(3)]
    assert store.labelling_plans.list() == [kept[1], kept[0], elsewhere]
    assert store.labelling_plans.chosen(oldest.id) == []
    assert stored_samples(store) == 7


def test_labelled_predictions_of_a_window_are_found(store: Store):
    model = add_model(store)
    rows = logged(store, 5, model.id)
    store.labels.record([NewLabel(rows[index].id, 0) for index in (0, 2, 4)])
    found = store.labelling_plans.labelled(model.id, "site-a", first=rows[1].id, last=rows[4].id)
    assert found == {rows[2].id, rows[4].id}
    assert (
        store.labelling_plans.labelled(model.id, "site-b", first=rows[0].id, last=rows[4].id) == frozenset()
    )


@sqlite_only
def test_estimates_replace_each_other(store: Store):
    model = add_model(store)
    plan = add_plan(store, logged(store, 2, model.id), chosen=[0])
    for value in (0.5, 0.25):
        store.labelling_plans.note_estimate(plan.id, {"EC": [value, None, None]})
    found = store.labelling_plans.get(plan.id)
    assert found.estimate == {"EC": [0.25, None, None]}
    assert found.estimated_at is not None
    assert found.estimated_at >= found.created_at
    store.labelling_plans.note_estimate(new_prediction_id(), {})


@sqlite_only
def test_documents_show_numbers_of_groups_and_neither_groups_nor_their_hashes(store: Store):
    model = add_model(store)
    rows = logged(store, 5, model.id, b"a" * 16, b"b" * 16, b"a" * 16)
    plan = add_plan(store, rows, chosen=[1, 3, 0, 2])
    store.labels.record([NewLabel(rows[3].id, 2)])
    context = Context(store, Settings(), "tests", 1.0)
    answer = show_plan(context, ShowPlan(plan=plan.id))
    document = answer.to_document()
    assert [one["group"] for one in document["predictions"]] == [0, None, 1, 1]
    assert document["progress"] == {"chosen": 4, "labelled": 1}
    assert document["expected_widths"] == WIDTHS
    assert document["model"] == model.reference
    assert (b"a" * 16).hex() not in json.dumps(document)
    lines = list(csv.DictReader(labels_to_get(context, answer).content.splitlines()))
    assert tuple(lines[0]) == COLUMNS
    assert [line["prediction_id"] for line in lines] == [str(rows[index].id) for index in (1, 3, 0, 2)]
    assert [line["label"] for line in lines] == ["", "2", "", ""]
    assert [float(line["propensity"]) for line in lines] == [0.25] * 4
    # An index would be imported as the class of that name.
    lines = list(csv.DictReader(plan_csv(answer.predictions, ("1", "2", "3")).splitlines()))
    assert [line["label"] for line in lines] == ["", "3", "", ""]
    assert {line["decision"] for line in lines} <= {"1", "2", "3"}


@sqlite_only
def test_an_erased_group_is_in_no_plan(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(erasure, "SETTLING_SECONDS", 0)
    model = add_model(store)
    rows = logged(store, 4, model.id, b"a" * 16, b"b" * 16)
    plan = add_plan(store, rows, chosen=[0, 1, 2], labelled=[3])
    store.erasure.erase([b"a" * 16], actor="tests")
    assert [one.prediction_id for one in store.labelling_plans.chosen(plan.id)] == [rows[1].id, rows[2].id]
    assert stored_samples(store) == 3
    # What a job that read the log before the erasure adds later.
    later = add_plan(store, rows, chosen=[0, 1])
    assert stored_samples(store) == 4
    assert store.labelling_plans.progress([later.id]) == {later.id: PlanProgress(1, 0)}


def test_samples_expire_with_their_predictions(own_store: Store):
    model, _ = add_serving_model(own_store)
    rows = logged(own_store, 3, model.id)
    plan = add_plan(own_store, rows, chosen=[0, 1, 2])
    tomorrow = plan.until.date() + timedelta(days=1)
    own_store.retention.delete_expired(lambda _: 1, tomorrow, seconds=60)
    assert stored_samples(own_store) == 3
    own_store.retention.delete_expired(lambda _: None, tomorrow + timedelta(days=9), seconds=60)
    assert stored_samples(own_store) == 3
    # On PostgreSQL the server's clock limits how far a fast clock here reaches.
    days = -1 if own_store.database.is_postgresql else 1
    own_store.retention.delete_expired(lambda _: days, tomorrow + timedelta(days=9), seconds=60)
    assert stored_samples(own_store) == 0
    assert own_store.labelling_plans.get(plan.id).size == 3


@sqlite_only
def test_plans_are_deleted_with_their_model(store: Store):
    model = add_model(store, name="second")
    rows = logged(store, 2, model.id + 1)
    add_plan(store, rows, chosen=[0], model_id=model.id)
    store.remove_model(model.reference, actor="tests")
    assert store.labelling_plans.list() == []
    assert stored_samples(store) == 0
