"""The migrations build the declared tables and can be reverted, and an unsuitable schema is explained."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from lifelong_core.deploy import Argmax, BayesRule
from lifelong_core.store import NewLabel, Scope, Store
from lifelong_core.store.access.audit_log import CHAINED, NUMBERED
from lifelong_core.store.engine.database import Database
from lifelong_core.store.log import partitions
from lifelong_core.store.schema import migration, tables, version
from lifelong_core.values.errors import ConfigurationError, SchemaError
from tests import databases
from tests.unit.store.design_samples import STATED_COSTS, interview, recommendation
from tests.unit.store.samples import (
    CLASSES,
    COSTS,
    add_model,
    add_serving_model,
    calibration,
    cycle,
    entry,
    read_all,
)


def differences(url: str) -> list[Any]:
    """What would have to change for the database to be as declared; partitions come and go."""

    def is_declared(name: str | None, kind: str, parents: Any) -> bool:
        return not (kind == "table" and str(name).startswith("predictions_"))

    database = Database(url)
    options = {"compare_type": True, "compare_server_default": True, "include_name": is_declared}
    try:
        with database.read() as connection:
            return compare_metadata(MigrationContext.configure(connection, opts=options), tables.metadata)
    finally:
        database.close()


def shape_of(url: str) -> dict[str, Any]:
    """What a comparison by Alembic overlooks: keys, foreign keys, unique constraints, indexes, with their names."""
    database = Database(url)
    try:
        inspector = sa.inspect(database.engine)
        names = [name for name in inspector.get_table_names() if name in tables.metadata.tables]
        return {
            name: (
                inspector.get_pk_constraint(name),
                sorted(inspector.get_foreign_keys(name), key=str),
                sorted(inspector.get_unique_constraints(name), key=str),
                sorted(_index_shape(index) for index in inspector.get_indexes(name)),
                [
                    (column["name"], str(column["type"]), column["nullable"])
                    for column in inspector.get_columns(name)
                ],
            )
            for name in names
        }
    finally:
        database.close()


def _index_shape(index: Any) -> str:
    """Conditions of partial indexes are objects that are equal to nothing but themselves."""
    options = {key: str(value) for key, value in index.get("dialect_options", {}).items()}
    return str({**index, "dialect_options": options})


def names_in(url: str) -> list[str]:
    database = Database(url)
    try:
        return sa.inspect(database.engine).get_table_names()
    finally:
        database.close()


def test_the_migrated_schema_is_the_declared_one(
    kind: str, empty_url: str, tmp_path: Path, postgresql_server: databases.PostgreSQL
):
    (tmp_path / "declared").mkdir()
    with databases.database(kind, tmp_path / "declared", postgresql_server, migrated=False) as declared_url:
        declared = Database(declared_url)
        tables.metadata.create_all(declared.engine)
        declared.close()
        Store.migrate(empty_url)
        assert differences(empty_url) == []
        assert set(shape_of(empty_url)) == set(tables.metadata.tables)
        assert shape_of(empty_url) == shape_of(declared_url)


def test_the_comparison_sees_a_missing_column_and_a_missing_index(empty_url: str):
    Store.migrate(empty_url)
    database = Database(empty_url)
    with database.write() as connection:
        connection.execute(sa.text("ALTER TABLE models DROP COLUMN artifact"))
        connection.execute(sa.text("DROP INDEX ix_labels_newest"))
    database.close()
    assert {difference[0] for difference in differences(empty_url)} == {"add_column", "add_index"}


def test_the_log_is_partitioned_by_day_on_postgresql(database_url: str, kind: str):
    if kind == "sqlite":
        assert not [name for name in names_in(database_url) if name.startswith("predictions_")]
        return
    database = Database(database_url)
    with database.read() as connection:
        key = connection.execute(sa.text("SELECT pg_get_partkeydef('predictions'::regclass)")).scalar_one()
    database.close()
    assert key == "RANGE (logged_on)"
    assert "predictions_default" in names_in(database_url)
    assert len([name for name in names_in(database_url) if name.startswith("predictions_2")]) == 8


def test_migrating_down_leaves_nothing_and_up_again_everything(empty_url: str):
    Store.migrate(empty_url)
    database = Database(empty_url)
    migration.downgrade(database, "base")
    assert set(names_in(empty_url)) == {"alembic_version"}
    migration.upgrade(database)
    database.close()
    assert differences(empty_url) == []


def test_migrating_twice_changes_nothing(database_url: str, artifacts_url: str):
    with Store.open(database_url, artifacts_url) as store:
        store.environments.ensure("site-a", limit=5)
        before = store.registry()
        Store.migrate(database_url)
        assert store.registry() == before


def test_processes_that_migrate_at_once_all_succeed(empty_url: str):
    start = threading.Barrier(4)
    failures: list[BaseException] = []

    def work() -> None:
        start.wait()
        try:
            Store.migrate(empty_url)
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert differences(empty_url) == []


def test_opening_a_database_that_is_not_there_names_init(empty_url: str, artifacts_url: str, tmp_path: Path):
    with pytest.raises(SchemaError, match="lifelong init"):
        Store.open(empty_url, artifacts_url)
    assert not (tmp_path / "lifelong.db").exists()


def test_opening_an_older_schema_names_upgrade(database_url: str, artifacts_url: str):
    database = Database(database_url)
    migration.downgrade(database, "0001")
    database.close()
    with pytest.raises(SchemaError, match=r"older schema 0001.*lifelong upgrade"):
        Store.open(database_url, artifacts_url)


def content_of(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that there are, those of the log by whatever partition."""
    database = Database(url)
    try:
        with database.read() as connection:
            there = set(sa.inspect(connection).get_table_names())
            found: dict[str, list[tuple[Any, ...]]] = {}
            for name in there - {"alembic_version"}:
                if not name.startswith("predictions_"):
                    rows = connection.execute(sa.text(f"SELECT * FROM {name}")).mappings()
                    found[name] = sorted(tuple(sorted(row.items(), key=str)) for row in rows)  # type: ignore[type-var]
            return found
    finally:
        database.close()


REVISIONS = [f"{number:04}" for number in range(1, 24)]


def test_the_known_revisions_are_those_of_alembic() -> None:
    scripts = ScriptDirectory(str(version.SCRIPTS))
    assert version.revisions() == sorted(script.revision for script in scripts.walk_revisions()) == REVISIONS
    assert scripts.get_current_head() == REVISIONS[-1]


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_released_schema_holds_is_kept_up_and_down_and_up(
    empty_url: str, artifacts_url: str, revision: str
):
    database = Database(empty_url)
    migration.upgrade(database)
    partitions.ensure_partitions(database, datetime.now(UTC).date())
    database.close()
    with Store.open(empty_url, artifacts_url) as store:
        model, _ = add_serving_model(store)
        first = entry("request", predictions=2, model_id=model.id, environment="site-a")
        store.environments.ensure("site-a", limit=9)
        store.predictions.append([first, entry(model_id=model.id)])
        store.labels.record([NewLabel(first.predictions[0].id, 1, "pathology")], actor="lis")
        recorded = store.cycles.finish(cycle(model), candidate=None, expected_sequence=None)
        store.tokens.create("gateway", [Scope.PREDICT], actor="tests")
        store.interviews.start(interview(), task="lesions", actor="tests")
        store.recommendations.attach("lesions", recommendation(), actor="tests")
        store.jobs.submit("validate", {"task": "lesions"}, actor="tests")
    database = Database(empty_url)
    # As if that version had written it all.
    migration.downgrade(database, revision)
    held = content_of(empty_url)
    assert len(held["predictions"]) == 3
    assert len(held["audit"]) == 11
    assert ("jobs" in held) == (revision >= "0004")
    assert ("group_keys" in held) == (revision >= "0007")
    done = migration.upgrade(database)
    assert (done.before, done.after) == (revision, REVISIONS[-1])
    assert differences(empty_url) == []
    with Store.open(empty_url, artifacts_url) as store:
        assert store.cycles.list() == [recorded]
        assert len(list(read_all(store))) == 3
        (first_label,) = store.labels.history(first.predictions[0].id)
        assert (first_label.revision, first_label.label, first_label.source) == (1, 1, "pathology")
        assert first_label.actor == ("lis" if revision >= "0019" else None)
        found = store.audit.verify()
        assert (found.faults, found.chained_up_to) == ((), 0 if revision >= "0013" else 11)
        # What was changed through a table that the older schema lacks.
        assert np.array_equal(store.tasks.get("lesions").costs, STATED_COSTS)
        assert len(store.jobs.list()) == (revision >= "0004")
        store.tasks.add("another", CLASSES, COSTS, actor="tests")
    migration.downgrade(database, revision)
    again = content_of(empty_url)
    assert {name: [row for row in held[name] if row not in again[name]] for name in held} == {
        name: [row for row in held[name] if name == "registry_revision"] for name in held
    }
    migration.upgrade(database)
    database.close()
    assert differences(empty_url) == []


def test_tasks_of_older_versions_decide_by_the_bayes_rule(empty_url: str, artifacts_url: str):
    database = Database(empty_url)
    migration.upgrade(database)
    with Store.open(empty_url, artifacts_url) as store:
        store.tasks.add("lesions", CLASSES, COSTS, decision_rule=Argmax(), actor="tests")
        assert store.tasks.get("lesions").decision_rule == Argmax()
    migration.downgrade(database, "0021")
    migration.upgrade(database)
    database.close()
    with Store.open(empty_url, artifacts_url) as store:
        assert store.tasks.get("lesions").decision_rule == BayesRule()


def test_the_preprocessing_of_calibration_sets_of_older_versions_is_unknown(
    empty_url: str, artifacts_url: str
):
    database = Database(empty_url)
    migration.upgrade(database)
    with Store.open(empty_url, artifacts_url) as store:
        add_model(store)
        labelled = replace(calibration(), preprocessing_digest="ab" * 32)
        added = store.calibration_sets.add("dermatology", labelled, actor="tests")
        assert store.calibration_sets.get(added.id).preprocessing_digest == "ab" * 32
    migration.downgrade(database, "0022")
    migration.upgrade(database)
    database.close()
    with Store.open(empty_url, artifacts_url) as store:
        assert store.calibration_sets.get(added.id).preprocessing_digest is None
        assert store.registry().preprocessing_digests == {}


def test_gaps_that_older_versions_left_in_the_audit_log_are_noted_once(empty_url: str, artifacts_url: str):
    Store.migrate(empty_url)
    with Store.open(empty_url, artifacts_url) as store:
        add_serving_model(store)
    database = Database(empty_url)
    migration.downgrade(database, "0002")
    with database.write() as connection:
        connection.execute(sa.text("DELETE FROM audit WHERE id IN (2, 3)"))
        if database.is_postgresql:
            # The sequence of that version goes on where it was.
            insert = (
                "INSERT INTO audit (at, actor, action, subject, details) VALUES (now(), 'a', 'b', 'c', '{}')"
            )
            connection.execute(sa.text(insert))
    migration.upgrade(database)
    database.close()
    with Store.open(empty_url, artifacts_url) as store:
        newest, noted, *_ = store.audit.list()
        assert (newest.action, newest.details) == (CHAINED, {"up_to": noted.id})
        assert (noted.action, noted.details["missing"]) == (NUMBERED, 2)
        assert store.audit.verify().faults == ()
        store.tasks.add("another", CLASSES, COSTS, actor="tests")
        assert store.audit.list()[0].id == newest.id + 1
        with store.database.write() as connection:
            connection.execute(sa.delete(tables.audit).where(tables.audit.c.id == noted.id))
        assert store.audit.verify().faults != ()


def test_a_newer_schema_is_neither_opened_nor_migrated(database_url: str, artifacts_url: str):
    database = Database(database_url)
    with database.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(SchemaError, match="newer version"):
        Store.open(database_url, artifacts_url)
    with pytest.raises(SchemaError, match="newer version"):
        Store.migrate(database_url)


def test_migrating_makes_the_folder_of_a_sqlite_file(tmp_path: Path):
    Store.migrate(f"sqlite:///{tmp_path / 'some' / 'folder' / 'lifelong.db'}")
    assert (tmp_path / "some" / "folder" / "lifelong.db").is_file()


def test_a_folder_that_cannot_be_made_is_a_configuration_error(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigurationError, match="cannot be made"):
        Store.migrate(f"sqlite:///{tmp_path / 'file' / 'lifelong.db'}")


@pytest.mark.parametrize("rows", [(), ("0007", "0008")])
def test_a_schema_of_no_or_several_revisions_is_neither_opened_nor_migrated(
    database_url: str, artifacts_url: str, rows: tuple[str, ...]
):
    database = Database(database_url)
    with database.write() as connection:
        connection.execute(sa.text("DELETE FROM alembic_version"))
        for row in rows:
            connection.execute(sa.text(f"INSERT INTO alembic_version VALUES ('{row}')"))
    database.close()
    for call in (lambda: Store.open(database_url, artifacts_url), lambda: Store.migrate(database_url)):
        with pytest.raises(SchemaError, match=rf"holds {len(rows)} rows.*backup"):
            call()
