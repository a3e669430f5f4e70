"""The migrations build the declared tables and keep rows, and an unsuitable schema is explained."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from lifelong_core.store import Store
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.errors import BusyError
from lifelong_core.store.schema import migration, tables, version
from lifelong_core.values.errors import ConfigurationError, SchemaError
from tests import databases
from tests.unit.store.samples import CLASSES, COSTS, add_serving_model, cycle


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


def test_an_older_schema_is_upgraded_with_its_rows(
    database_url: str, artifacts_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with Store.open(database_url, artifacts_url) as store:
        store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    before = content_of(database_url)
    older = version.revisions()[-1]
    monkeypatch.setattr(version, "SCRIPTS", databases.next_version(tmp_path))
    with pytest.raises(SchemaError, match=rf"older schema {older}.*lifelong upgrade"):
        Store.open(database_url, artifacts_url)
    assert content_of(database_url) == before
    assert Store.migrate(database_url) == migration.Migration(older, databases.NEXT_REVISION)
    with Store.open(database_url, artifacts_url) as store:
        assert store.tasks.get("lesions").class_names == CLASSES
    (task,) = content_of(database_url)["tasks"]
    assert ("note", "note of lesions") in task


def without_figures(url: str) -> None:
    """Take a migrated database back to the schema 0024."""
    database = Database(url)
    with database.write() as connection:
        connection.execute(sa.text("DROP TABLE notifications"))
        connection.execute(sa.text("ALTER TABLE cycles DROP COLUMN figures"))
    database.close()
    databases.set_revision(url, "0024")


def test_the_newest_cycle_of_each_population_gets_its_figures(database_url: str, artifacts_url: str):
    estimate = {"prevalence": [0.2, 0.3, 0.5], "low": [0.1, 0.2, 0.4], "high": [0.3, 0.4, 0.6]}
    report = {
        "reasons": [{"code": "gain_too_small", "text": "It does not pay."}],
        "assumed_prevalence": [0.4, 0.4, 0.2],
        "prevalence": estimate,
        "expected_gain": {"current_cost": 0.5, "candidate_cost": 0.4},
        "performance": {"estimates": {"AC": [0.7, 0.65, None]}},
    }
    with Store.open(database_url, artifacts_url) as store:
        model, _ = add_serving_model(store)
        for number, (place, saw) in enumerate((("site-a", {}), ("site-a", report), ("site-b", {}))):
            store.environments.ensure(place, limit=9)
            due = datetime(2026, 1, 1 + number, tzinfo=UTC)
            one = replace(cycle(model, due_at=due), environment=place, report=saw, log_position=number)
            store.cycles.finish(one, candidate=None, expected_sequence=None)
        before = store.population_cycles.newest()
    without_figures(database_url)
    assert Store.migrate(database_url).before == "0024"
    with Store.open(database_url, artifacts_url) as store:
        after = store.population_cycles.newest()
        assert after == before
        assert after[model.id, "site-a"].figures.reasons == ("gain_too_small",)
        shifts = store.population_cycles.recent_shifts([(model.id, "site-a")], limit=9)
        assert shifts[model.id, "site-a"] == pytest.approx([0.6])


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_an_upgrade_waits_shortly_for_a_table_in_use(database_url: str, monkeypatch: pytest.MonkeyPatch):
    without_figures(database_url)
    monkeypatch.setattr(migration, "LOCK_MILLISECONDS", 50)
    reader = Database(database_url)
    with reader.read() as connection:
        # Without a limit the upgrade would wait until the server ends this transaction, and succeed.
        connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 10000"))
        connection.execute(sa.text("SELECT count(*) FROM cycles"))
        with pytest.raises(BusyError, match=r"nothing has changed.*Try again"):
            Store.migrate(database_url)
    reader.close()
    assert Store.migrate(database_url).before == "0024"


@pytest.mark.parametrize("revision", ["0001", "0023"])
def test_a_schema_from_before_the_first_one_is_neither_opened_nor_migrated(
    database_url: str, artifacts_url: str, revision: str
):
    databases.set_revision(database_url, revision)
    before = content_of(database_url)
    for call in (lambda: Store.open(database_url, artifacts_url), lambda: Store.migrate(database_url)):
        with pytest.raises(SchemaError) as caught:
            call()
        message = str(caught.value)
        assert f"has the schema {revision}; this version expects {version.revisions()[-1]}" in message
        assert "lifelong export" in message
        assert "lifelong init" in message
    assert content_of(database_url) == before


def test_the_known_revisions_are_those_of_alembic() -> None:
    scripts = ScriptDirectory(str(version.SCRIPTS))
    assert version.revisions() == sorted(script.revision for script in scripts.walk_revisions())
    assert scripts.get_current_head() == version.revisions()[-1]


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


def test_a_newer_schema_is_neither_opened_nor_migrated(database_url: str, artifacts_url: str):
    databases.set_revision(database_url, "9999")
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
    databases.set_revision(database_url, *rows)
    for call in (lambda: Store.open(database_url, artifacts_url), lambda: Store.migrate(database_url)):
        with pytest.raises(SchemaError, match=rf"holds {len(rows)} rows.*backup"):
            call()
