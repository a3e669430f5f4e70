"""Queries about all populations give the same as queries about single ones."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from lifelong_core.store import LogEntry, Model, NewLabel, Store, new_prediction_id
from lifelong_core.store.log.commit_order import read_log_position
from lifelong_core.store.summaries.summaries import Summaries
from tests.unit.store.samples import add_model, add_serving_model, cycle, entry, head, prediction

DUE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def model(store: Store) -> Model:
    added, _ = add_serving_model(store)
    for name in ("site-a", "site-b"):
        store.environments.ensure(name, limit=9)
    return added


def log(store: Store, model: Model, environment: str, predictions: int = 1) -> None:
    store.predictions.append([entry(model_id=model.id, environment=environment, predictions=predictions)])


def judge(store: Store, model: Model, environment: str, log_position: int, due_at: datetime = DUE) -> None:
    one = replace(cycle(model, due_at=due_at), environment=environment, log_position=log_position)
    store.cycles.finish(one, candidate=None, expected_sequence=None)


def test_news_count_each_prediction_once_by_population(store: Store, model: Model):
    log(store, model, "site-a", 2)
    start = store.predictions.log_position()
    log(store, model, "site-a", 3)
    log(store, model, "site-b")
    first = store.watching.news(start)
    assert first.counts == {(model.id, "site-a"): 3, (model.id, "site-b"): 1}
    assert store.watching.news(first.log_position).counts == {}
    log(store, model, "site-b", 2)
    assert store.watching.news(first.log_position).counts == {(model.id, "site-b"): 2}


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_transaction_that_has_not_ended_holds_later_predictions_back(store: Store, model: Model):
    start = store.predictions.log_position()
    with store.database.write() as older:
        older.execute(sa.text("SELECT pg_current_xact_id()"))
        log(store, model, "site-a", 2)
        assert store.watching.news(start).counts == {}
        assert store.watching.held_back() == {(model.id, "site-a")}
    assert store.watching.held_back() == frozenset()
    assert store.watching.news(start).counts == {(model.id, "site-a"): 2}


def test_unjudged_predictions_are_those_since_the_newest_cycle_of_their_population(
    store: Store, model: Model
):
    log(store, model, "site-a", 2)
    log(store, model, "default", 1)
    for environment in ("site-a", "site-b"):
        judge(store, model, environment, store.predictions.log_position())
    oldest = store.predictions.log_position()
    log(store, model, "site-a", 3)
    log_position = store.predictions.log_position()
    assert store.watching.count_unjudged(oldest, log_position) == {(model.id, "site-a"): 3}
    assert store.watching.count_unjudged(log_position, log_position) == {}
    assert store.watching.count_unjudged(0, log_position) == {(model.id, "site-a"): 3}


def test_the_newest_cycle_is_the_one_that_read_furthest(store: Store, model: Model):
    other = add_model(store, "other")
    assert store.watching.newest_cycles() == {}
    for place, due_at, log_position in (
        ((model, "site-a"), DUE, 5),
        ((model, "site-a"), DUE + timedelta(hours=2), 7),
        ((model, "site-a"), DUE + timedelta(hours=1), 7),
        ((model, "site-b"), DUE, 9),
        ((other, "site-a"), DUE, 1),
    ):
        judge(store, *place, log_position, due_at)
    found = store.watching.newest_cycles()
    assert found.keys() == {(model.id, "site-a"), (model.id, "site-b"), (other.id, "site-a")}
    for place, newest in found.items():
        last = store.cycles.last(*place)
        assert last is not None
        assert (newest.id, newest.log_position) == (last.id, last.log_position)


def test_summarised_populations_are_those_whose_summaries_are_not_behind(store: Store, model: Model):
    environments = ("default", "site-a", "site-b")
    rows = [
        ("site-a", "one", 4, None),
        ("site-a", "two", 4, None),
        ("site-b", "one", 4, None),
        ("site-b", "two", 0, None),
    ]

    def agree() -> frozenset[tuple[int, str]]:
        found = store.watching.summarised()
        for environment in environments:
            assert ((model.id, environment) in found) != store.summaries.are_behind(model.id, environment)
        return found

    assert agree() == frozenset()
    with store.database.write() as connection:
        for environment, digest, order, last in rows:
            connection.execute(
                sa.text(
                    "INSERT INTO summary_cursors (model_id, environment, quantifier_digest, commit_order, last_id,"
                    " is_grouped, revision) VALUES (:model, :environment, :digest, :order, :last, :no, 1)"
                ),
                {
                    "model": model.id,
                    "environment": environment,
                    "digest": digest,
                    "order": order,
                    "last": last,
                    "no": False,
                },
            )
    assert agree() == {(model.id, "site-a")}
    with store.database.write() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO window_summaries (model_id, environment, quantifier_digest, bucket, summary, samples,"
                " quarantined) VALUES (:model, 'site-a', 'one', :bucket, :summary, 1, 0)"
            ).bindparams(sa.bindparam("bucket", DUE, type_=sa.DateTime(timezone=True))),
            {"model": model.id, "summary": b"of one hour"},
        )
    assert agree() == {(model.id, "site-a")}
    with store.database.write() as connection:
        Summaries.mark_stale(connection, model_id=model.id, environment="site-a")
    assert agree() == frozenset()


def test_the_state_of_labels_changes_with_every_label(store: Store, model: Model):
    rows = tuple(prediction(model.id, "site-a") for _ in range(3))
    store.predictions.append([LogEntry(rows)])
    assert store.watching.labels() == {}
    seen = [store.watching.labels().get((model.id, "site-a"))]
    for one, label in ((rows[0], 1), (rows[1], 0), (rows[0], 2)):
        store.labels.record([NewLabel(one.id, label)])
        found = store.watching.labels()
        assert found.keys() == {(model.id, "site-a")}
        state = found[model.id, "site-a"]
        assert state not in seen
        seen.append(state)
    assert state.count == 2
    store.labels.record([NewLabel(rows[0].id, 2), NewLabel(new_prediction_id(), 1)])
    assert store.watching.labels() == {(model.id, "site-a"): state}


def test_head_changes_are_the_newest_activations(store: Store, model: Model):
    store.heads.publish(model.reference, head(0.5), environment="site-a", actor="tests")
    store.heads.publish(model.reference, head(1.0), environment="site-a", actor="tests")
    store.heads.rollback(model.reference, environment="site-a", actor="tests")
    found = store.watching.head_changes()
    assert found.keys() == {(model.id, "site-a"), (model.id, None)}
    for (_, environment), change in found.items():
        newest = store.heads.activations(model.reference, environment=environment)[-1]
        assert (change.at, change.reason) == (newest.activated_at, newest.reason)


def test_the_news_are_read_by_commit_order_alone(store: Store, model: Model):
    """A plan that goes by populations would read the whole log at each look."""
    log(store, model, "site-a", 2)
    statements: list[tuple[str, object]] = []

    def note(_: object, __: object, statement: str, parameters: object, *___: object) -> None:
        statements.append((statement, parameters))

    sa.event.listen(store.database.engine, "before_cursor_execute", note)
    store.watching.news(0)
    sa.event.remove(store.database.engine, "before_cursor_execute", note)
    assert len(statements) <= 2
    if not store.database.is_postgresql:
        with store.database.read() as connection:
            assert read_log_position(connection) > 0
            statement, parameters = statements[-1]
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            assert "ix_predictions_commit_order" in str(plan.all())
