"""`lifelong doctor` passes a sound installation, detects each deliberate damage, and says how to fix it."""

import json
import shutil
import socket
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong_core.configuration.monitor_settings import monitor_settings
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import quantifier
from lifelong_core.deploy.quantification.codebook import Codebook
from lifelong_core.doctor import examination, machine, processes
from lifelong_core.entities.notifications import Delivery
from lifelong_core.entities.registry import ModelLoad
from lifelong_core.images.preprocessing_digest import preprocessing_digest
from lifelong_core.runtime.graph_check import UsableProviders
from lifelong_core.store import (
    Heartbeat,
    LogEntry,
    Prediction,
    Scope,
    Store,
    Tick,
    Visit,
    load_group_key,
    new_prediction_id,
    register_calibration,
)
from lifelong_core.store.access.audit_chain import AnchorFile
from lifelong_core.store.log import identifiers
from lifelong_core.store.schema import tables
from lifelong_core.store.spool.spool import Spool
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from tests import databases
from tests.unit.store.design_samples import recommendation, recommendation_without_costs
from tests.unit.store.knowledge_samples import make_entry
from tests.unit.store.samples import CLASSES, COSTS, calibration, cycle, head

DATA = Path("lifelong-data")
NOW = datetime.now(UTC)


def prediction(
    *, days_ago: float = 0, environment: str = "clinic", logits: tuple[float, ...] = (1, 2, 3)
) -> Prediction:
    identity = new_prediction_id()
    if days_ago:
        identity = UUID(
            int=identifiers.first_id_at(NOW - timedelta(days=days_ago)).int + identity.int % 2**60
        )
    return Prediction(identity, 1, environment, 1, 0, np.array(logits, np.float32))


def log(store: Store, *rows: Prediction) -> None:
    store.predictions.append([LogEntry((row,)) for row in rows])


def fold(store: Store) -> None:
    fitted = quantifier("CC").fit(calibration())
    while not store.summaries.fold(store.models.get("net"), "clinic", fitted, classes=3).is_done:
        pass


def acknowledge(store: Store, *, revision: int | None = None, worker: str = "w1") -> None:
    store.workers.record_heartbeat(
        worker,
        host=socket.gethostname(),
        process=7,
        started_at=NOW,
        revision=store.revision() if revision is None else revision,
        heads={},
        models={},
    )


VISIT = Visit(1, "clinic", NOW, "skip", "no new prediction", NOW)


def beat(
    store: Store,
    *,
    monitor: str = "m1",
    started_at: datetime = NOW,
    tick: Tick | None = Tick(NOW, NOW, NOW),  # noqa: B008 - frozen
    visit: Visit | None = VISIT,
) -> None:
    visits = () if visit is None else (visit,)
    store.monitors.record_heartbeat(
        Heartbeat(
            monitor,
            "ward-3",
            8,
            started_at,
            3600,
            "auto",
            {},
            tick,
            visits,
            monitor_settings(Settings.load()),
        )
    )


@pytest.fixture(autouse=True, scope="module")
def codebooks_made_once():
    """A pure function of the calibration set, and most of what a check takes."""
    with pytest.MonkeyPatch.context() as patched:
        make, made = Codebook.of, dict[str, Codebook]()
        patched.setattr(
            Codebook, "of", lambda given: made.setdefault(given.digest, made.get(given.digest) or make(given))
        )
        yield


@pytest.fixture(autouse=True, scope="module")
def providers_asked_once():
    """A process of its own tells which execution providers there are, at each check."""
    ask, told = machine.check_execution_providers, dict[tuple[str, ...], UsableProviders]()

    def remembered(given: Settings) -> UsableProviders:
        names = tuple(given.execution_providers)
        if names not in told:
            told[names] = ask(given)
        return told[names]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(machine, "check_execution_providers", remembered)
        yield


@pytest.fixture(scope="module")
def sound(made_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of an installation that serves and is watched, with some predictions."""
    folder = tmp_path_factory.mktemp("sound") / DATA
    shutil.copytree(made_once, folder)
    with Store.open(f"sqlite:///{folder}/lifelong.db", f"file://{folder}/artifacts") as opened:
        opened.tasks.add("lesions", CLASSES, COSTS, actor="tests")
        opened.models.add("lesions", "net", kind="external", actor="tests")
        register_calibration(opened, "net", calibration(), actor="tests")
        opened.environments.ensure("clinic", limit=9)
        log(opened, *(prediction() for _ in range(5)))
        fold(opened)
        ran = cycle(opened.models.get("net"), due_at=NOW)
        opened.cycles.finish(replace(ran, environment="clinic"), candidate=None, expected_sequence=None)
        acknowledge(opened)
    return folder


@pytest.fixture
def store(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of a sound installation of the test's own."""
    shutil.copytree(sound, tmp_path / DATA)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIFELONG_QUANTIFIER", "CC")
    monkeypatch.setenv("LIFELONG_MAXIMUM_SPOOL_BYTES", "1000000")
    monkeypatch.setattr(processes, "_CATCHING_UP_SECONDS", 0)
    with open_store() as opened:
        acknowledge(opened)
        beat(opened)
        yield opened


def examine(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit status, and the checks by name."""
    result = CliRunner().invoke(cli, ["doctor", "--json", *arguments], catch_exceptions=False)
    document = json.loads(result.stdout)
    assert ["ok", "warning", "failure"][result.exit_code] == document["status"]
    return result.exit_code, {check["check"]: check for check in document["checks"]}


def expect(check: str, status: str, *words: str, only: bool = True) -> None:
    """That one check finds this, by default as the only one."""
    _, checks = examine()
    found = checks[check]
    assert found["status"] == status, checks
    said = " ".join(f"{finding['message']} {finding['hint']}" for finding in found["findings"])
    for word in words:
        assert word in said
    if only:
        assert [name for name, one in checks.items() if one["status"] != "ok"] == [check] * (status != "ok")


def update(store: Store, statement: Any) -> None:
    with store.database.write() as connection:
        connection.execute(statement)


def test_a_sound_installation_is_in_order(store: Store):
    before = (store.revision(), len(store.audit.list()), sorted(DATA.rglob("*")))
    for arguments in ((), ("--quick",)):
        status, checks = examine(*arguments)
        assert (status, {check["status"] for check in checks.values()}) == (0, {"ok"}), checks
        assert list(checks) == ["settings", "database", *examination.CHECKS]
    assert (store.revision(), len(store.audit.list()), sorted(DATA.rglob("*"))) == before


def test_people_get_lines_with_what_to_do(store: Store):
    (DATA / "group.key").chmod(0o644)
    result = CliRunner().invoke(cli, ["doctor"], catch_exceptions=False)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "ok       audit log: 8 entries as they were written." in lines
    index = next(index for index, line in enumerate(lines) if line.startswith("warning  group key: others"))
    assert lines[index + 1].strip() == f"chmod 600 {DATA / 'group.key'}"


def test_settings_that_cannot_be_read(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIFELONG_WORKERS", "0")
    expect("settings", "failure", "LIFELONG_WORKERS")


@pytest.mark.parametrize(("revision", "hint"), [("0023", "lifelong export"), ("9999", "newer version")])
def test_a_schema_of_another_version(store: Store, revision: str, hint: str):
    databases.set_revision(f"sqlite:///{DATA.resolve()}/lifelong.db", revision)
    expect("database", "failure", hint)


def test_a_database_that_takes_no_changes(store: Store, monkeypatch: pytest.MonkeyPatch):
    url = f"sqlite:///file:{DATA.resolve()}/lifelong.db?mode=ro&uri=true"
    monkeypatch.setenv("LIFELONG_DATABASE_URL", url)
    expect("writing", "failure", "read-only here")


def test_a_damaged_file(store: Store):
    store.close()
    file = DATA / "lifelong.db"
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    query = "SELECT rootpage FROM sqlite_master WHERE name = 'ix_predictions_commit_order'"
    page = connection.execute(query).fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    content = bytearray(file.read_bytes())
    content[(page - 1) * size + 8 : page * size] = bytes(size - 8)
    file.write_bytes(content)
    expect("integrity", "failure", "the database file is damaged", "backup", only=False)
    assert examine("--quick")[1]["integrity"]["status"] == "ok"


def test_an_audit_entry_that_is_gone(store: Store):
    update(store, sa.delete(tables.audit).where(tables.audit.c.id == 3))
    expect("audit log", "failure", "Entry 3 is missing", "lifelong audit verify")


def test_an_audit_entry_that_was_changed(store: Store):
    update(store, sa.update(tables.audit).where(tables.audit.c.id == 3).values(actor="somebody else"))
    expect("audit log", "failure", "Entry 3 was changed")


def test_audit_entries_that_were_cut_off_at_the_end(store: Store):
    anchor = AnchorFile(DATA / "audit.anchor")
    anchor.advance(store.audit)
    expect("audit log", "ok", "none cut off")
    update(store, sa.delete(tables.audit).where(tables.audit.c.id > 6))
    expect(
        "audit log",
        "failure",
        "Entries 7 to 8 are missing at the end",
        "If an older backup was restored, remove",
    )
    anchor.path.unlink()
    expect("audit log", "ok")


def test_predictions_that_should_have_been_deleted(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_RETENTION_DAYS", '{"clinic": 8}')
    beat(store)
    expect("retention", "ok")
    # Whole days, so that their dates are those days ago at any time of the day; one of grace is for the monitor.
    log(store, prediction(days_ago=9))
    fold(store)
    expect("retention", "ok")
    log(store, prediction(days_ago=10))
    fold(store)
    expect("retention", "failure", "clinic holds predictions older than 8 days", "lifelong monitor")
    assert store.retention.delete_expired({"clinic": 8}.get, NOW.date()).predictions >= 1
    fold(store)
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_RETENTION_DAYS", '{"clinic": 3}')
    beat(store)
    expect("retention", "warning", "deleted after 3 days", "LIFELONG_WINDOW_SECONDS")


def test_a_version_that_serves_nothing_may_wait_for_its_calibration(store: Store):
    store.models.add("lesions", "second", kind="external", actor="tests")
    acknowledge(store)
    expect("models", "ok", "2, not calibrated and not in use: second@1.")


def test_an_artifact_that_is_gone_or_damaged(store: Store):
    store.models.add("lesions", "second", kind="external", actor="tests")
    kept = store.calibration_sets.add("second", calibration(7), actor="tests")
    acknowledge(store)
    expect("artifacts", "ok")
    artifact = store.artifacts.path(kept.digest)
    whole = artifact.read_bytes()
    artifact.write_bytes(whole[:-1] + b"X")
    expect("artifacts", "failure", "calibration set 2 of second@1", "other bytes", "backup")
    artifact.unlink()
    expect("artifacts", "failure", "calibration set 2 of second@1", "is not in")


def test_an_active_calibration_set_of_another_preprocessing(store: Store):
    preprocessing = Preprocessing()
    store.models.add(
        "lesions", "local", kind="onnx", onnx=b"graph", preprocessing=preprocessing, actor="tests"
    )
    own = replace(calibration(7), preprocessing_digest=preprocessing_digest(preprocessing))
    added = store.calibration_sets.add("local", own, actor="tests")
    acknowledge(store)
    expect("calibration sets", "ok")
    sets = tables.calibration_sets
    update(store, sets.update().where(sets.c.id == added.id).values(preprocessing_digest="ab" * 32))
    words = "set of local@1 was made with another preprocessing", "`lifelong calibrate local@1 held_out/`"
    expect("calibration sets", "warning", *words)
    assert examine("--quick")[1]["calibration sets"]["status"] == "warning"


def test_damaged_heads(store: Store):
    store.heads.publish("net", head(0.5), environment=None, actor="tests")
    acknowledge(store)
    documents = tables.heads.c.document
    for version, status, words in ((1, "warning", "not in force"), (2, "failure", "roll back")):
        edited = sa.func.replace(documents, '"assumed_prevalence"', '"presumed_prevalence"')
        update(
            store, sa.update(tables.heads).where(tables.heads.c.version == version).values(document=edited)
        )
        expect("heads", status, f"head {version}", words)


def test_a_promoted_model_without_a_head(store: Store):
    acknowledge(store)
    expect("heads", "ok")
    update(store, sa.delete(tables.head_activations))
    expect("heads", "failure", "net@1 is promoted and has no default head", "lifelong heads publish net@1")


def test_heads_that_decide_otherwise_than_their_task(store: Store):
    store.recommendations.attach("lesions", recommendation(), actor="tests")
    acknowledge(store)
    expect("heads", "warning", "lesions: the default head of net@1", "still has", "--refit-head")


def test_a_rule_that_is_not_the_recommended_one(store: Store):
    store.recommendations.attach("lesions", recommendation_without_costs(), actor="tests")
    acknowledge(store)
    expect("recommendations", "ok", "1 attached", only=False)
    update(store, sa.update(tables.tasks).values(decision_rule={"kind": "bayes"}))
    asked = (
        "lesions decides by this rule: least expected cost. Its recommendation asks for another one: highest"
    )
    expect("recommendations", "warning", asked, "lifelong recommend --attach lesions", only=False)


def test_a_damaged_recommendation(store: Store):
    store.recommendations.attach("lesions", recommendation(), actor="tests")
    acknowledge(store)
    expect("recommendations", "ok", "1 attached", only=False)
    edited = sa.func.replace(tables.recommendations.c.document, "AUROC", "AUPRC")
    update(store, sa.update(tables.recommendations).values(document=edited))
    expect("recommendations", "failure", "recommendation 1 of lesions is damaged", "backup", only=False)


def test_transfers_without_a_ranker_and_a_damaged_entry(store: Store):
    expect("knowledge base", "ok", "0 tasks, 0 fingerprints, 0 transfers")
    store.knowledge.put(make_entry(sources=("nevi",)), actor="tests")
    expect("knowledge base", "warning", "No ranker is fitted", "lifelong knowledge refit")
    update(store, sa.update(tables.knowledge_entries).values(document="{}"))
    expect("knowledge base", "failure", "entry moles of the knowledge base is damaged", "Import it again")


@pytest.mark.usefixtures("store")
def test_a_signing_key_that_is_none():
    key = DATA / "signing.key"
    key.write_text("no key")
    key.chmod(0o600)
    expect("knowledge base", "failure", "signing.key holds no signing key", "backup")


def test_a_group_key_that_is_gone_or_read_by_others(store: Store):
    (DATA / "group.key").chmod(0o640)
    expect("group key", "warning", "chmod 600")
    (DATA / "group.key").write_text("abcd")
    expect("group key", "failure", "backup")
    (DATA / "group.key").unlink()
    expect("group key", "failure", "no key file", "LIFELONG_GROUP_KEY_FILE", "backup")
    # The key of another installation, as a second host makes it by itself.
    load_group_key(DATA / "group.key", create=True)
    expect("group key", "failure", "holds another key", "first")


@pytest.fixture
def spool(store: Store):
    opened = Spool(DATA / "spool", maximum_bytes=1_000_000)
    yield opened
    opened.close()


def test_predictions_that_wait_in_the_spool(store: Store, spool: Spool):
    spool.append([LogEntry((prediction(),))])
    expect("spool", "warning", "1 predictions wait", "lifelong serve")
    spool.deliver(lambda _: None)
    expect("spool", "ok")
    spool.append([LogEntry((prediction(days_ago=3),))])
    expect("spool", "failure", "the first for 3 days")
    rows = tuple(prediction(logits=tuple(range(100))) for _ in range(2000))
    spool.append([LogEntry(rows)])
    expect("spool", "failure", "of 1 MB", "503", "LIFELONG_MAXIMUM_SPOOL_BYTES")


def test_what_the_spool_put_aside(store: Store, spool: Spool):
    def refuse(_: object) -> None:
        raise InvalidInputError("nobody takes this.")

    spool.append([LogEntry((prediction(),))])
    spool.deliver(refuse)
    expect("spool", "warning", "refused 1 entries", "nobody takes this")
    spool.append([LogEntry((prediction(),))])
    segment = next((DATA / "spool").glob("*.segment"))
    spool.close()
    segment.write_bytes(segment.read_bytes()[:-3])
    spool.append([LogEntry((prediction(),))])
    spool.deliver(lambda _: None)
    expect("spool", "warning", "1 damaged pieces")


def test_a_spool_that_cannot_be_used(store: Store):
    (DATA / "spool").write_text("in the way")
    expect("spool", "failure", "spool", only=False)


@pytest.mark.parametrize(("free", "status"), [(50 << 20, "failure"), (500 << 20, "warning")])
def test_a_disk_with_little_room(store: Store, free: int, status: str, monkeypatch: pytest.MonkeyPatch):
    usage = shutil.disk_usage(DATA)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    expect("disk space", status, "the disk of the data directory", "MB left")


def test_a_disk_with_less_room_than_the_spool_may_take(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIFELONG_MAXIMUM_SPOOL_BYTES", "2000000000")
    usage = shutil.disk_usage(DATA)._replace(free=1_900_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    expect("disk space", "warning", "the disk of the spool", "may take 2,000 MB")


def test_workers_that_are_gone_or_behind(store: Store):
    acknowledge(store, revision=0, worker="w2")
    expect("workers", "warning", "older state of the registry")
    update(store, sa.update(tables.workers).values(seen_at=NOW - timedelta(hours=1)))
    expect("workers", "warning", "was seen last at", "no worker is running")
    update(store, sa.delete(tables.workers))
    expect("workers", "warning", "no worker is running", "lifelong serve")


def test_a_clinic_without_new_predictions_is_watched_by_visits_that_skip(store: Store):
    """No cycle is recorded while nothing is new: the heartbeat tells that the monitor goes on."""
    update(store, sa.update(tables.cycles).values(finished_at=NOW - timedelta(days=2)))
    expect("monitor", "ok", "monitor 8 on ward-3 (mode auto, every 3600 s)", "1 population watched")
    beat(store, visit=replace(VISIT, watched_at=NOW - timedelta(hours=3)))
    expect("monitor", "warning", "net@1 in clinic has not been watched since", "last visit: skip, no new")
    update(store, sa.delete(tables.cycles))
    beat(store, visit=replace(VISIT, watched_at=None, reason="the model has no calibration set."))
    expect(
        "monitor", "warning", "has never been watched (last visit: skip, the model has no calibration set)"
    )
    beat(store, visit=replace(VISIT, outcome="error", reason="the artifact is gone."))
    expect("monitor", "warning", "the last visit failed: the artifact is gone.")
    beat(store, visit=None)
    expect("monitor", "ok")  # new since the last tick


def test_a_population_that_only_a_monitor_of_the_past_has_watched(store: Store):
    update(store, sa.delete(tables.cycles))
    beat(store, monitor="gone", visit=replace(VISIT, watched_at=NOW - timedelta(hours=3)))
    update(store, sa.update(tables.monitors).values(seen_at=NOW - timedelta(hours=3)))
    beat(store, visit=None)
    expect("monitor", "warning", "net@1 in clinic has not been watched since")


def test_no_monitor(store: Store):
    store.monitors.forget("m1")
    expect(
        "monitor", "warning", "no monitor is running: 1 population", "is not watched; the last cycle ended at"
    )
    update(store, sa.delete(tables.cycles))
    expect("monitor", "warning", "no cycle has ever run", "lifelong monitor")


def test_without_predictions_it_says_that_there_is_nothing_to_watch(store: Store):
    for table in (tables.predictions, tables.window_summaries, tables.summary_cursors, tables.cycles):
        update(store, sa.delete(table))
    expect("monitor", "ok", "monitor 8 on ward-3", "no recent predictions to watch")
    store.monitors.forget("m1")
    expect("monitor", "warning", "no monitor is running: there are no recent predictions to watch")


def test_monitors_with_different_settings(store: Store):
    here = monitor_settings(Settings.load())
    first = Heartbeat("m1", "ward-3", 8, NOW, 3600, "auto", {}, Tick(NOW, NOW, NOW), (VISIT,), here)
    shadow = {**here, "policy.mode": "shadow"}
    store.monitors.record_heartbeat(first)
    store.monitors.record_heartbeat(replace(first, id="m2", host="ward-4", settings=here))
    expect("monitor", "ok")
    store.monitors.record_heartbeat(replace(first, id="m2", host="ward-4", mode="shadow", settings=shadow))
    expect("monitor", "failure", "monitor 8 on ward-3", "monitor 8 on ward-4", "policy.mode (auto, shadow)")
    store.monitors.forget("m1")
    expect("monitor", "warning", "other settings than this host has: policy.mode (auto, shadow)")


def test_a_monitor_that_was_killed_or_hangs(store: Store):
    ago = lambda **time: datetime.now(UTC) - timedelta(**time)  # noqa: E731
    silent = sa.update(tables.monitors).where(tables.monitors.c.id == "m1")
    update(store, silent.values(seen_at=ago(seconds=50)))
    expect("monitor", "ok")
    update(store, silent.values(seen_at=ago(seconds=70)))
    expect("monitor", "warning", "monitor 8 on ward-3 was seen last at", "no monitor is running")
    beat(store, monitor="m2", started_at=ago(seconds=100))
    expect("monitor", "warning", "monitor 8 on ward-3 was seen last at")
    beat(store, monitor="m2", started_at=ago(seconds=10))
    expect("monitor", "ok")  # it has taken the place of the other


def test_ticks_that_hang_fail_or_do_not_come(store: Store):
    ago = lambda **time: datetime.now(UTC) - timedelta(**time)  # noqa: E731
    beat(store, tick=Tick(NOW, ago(minutes=9), None))
    expect("monitor", "ok")
    beat(store, tick=Tick(NOW, ago(minutes=11), None))
    expect("monitor", "warning", "has been in the same tick since")
    beat(store, tick=Tick(NOW, NOW, NOW, "the database has no registry."))
    expect("monitor", "warning", "the last tick", "failed as a whole: the database has no registry.")
    beat(store, tick=Tick(NOW, ago(hours=3), ago(minutes=119)))
    expect("monitor", "ok")
    beat(store, tick=Tick(NOW, ago(hours=3), ago(minutes=121)))
    expect("monitor", "warning", "has made no tick since", "its interval is 3600 s")
    beat(store, tick=None, started_at=ago(minutes=2))
    expect("monitor", "warning", "has not begun to watch")


def test_a_monitor_that_died_in_the_middle_of_a_cycle(store: Store):
    lease = store.leases.acquire("cycle/1/clinic", "a host/1", 30)
    assert lease is not None
    _, checks = examine()
    assert "cycle/1/clinic by a host/1" in checks["monitor"]["findings"][0]["message"]
    update(store, sa.update(tables.leases).values(expires_at=NOW - timedelta(hours=3)))
    expect("monitor", "warning", "a host/1 died while it held cycle/1/clinic", "lifelong monitor")
    # A population whose predictions are too old for a window needs no monitor to take it over.
    update(store, sa.update(tables.leases).values(name="cycle/1/default"))
    expect("monitor", "ok")


def test_jobs_that_nobody_does(store: Store, monkeypatch: pytest.MonkeyPatch):
    job = store.jobs.submit("validate", {}, actor="tests")
    expect("jobs", "ok", "1 waiting, 0 running")
    asked = sa.update(tables.jobs).values(created_at=NOW - timedelta(minutes=10))
    update(store, asked)
    expect("jobs", "warning", "1 job is not done, since", "no monitor has claimed any", "lifelong monitor")
    behind = store.jobs.submit("validate", {"number": 2}, actor="tests")
    assert (claimed := store.jobs.claim("a host/1", lease_seconds=600)) is not None
    assert claimed.id == job.id
    update(store, asked)
    expect("jobs", "ok", "1 waiting, 1 running")
    monkeypatch.setenv("LIFELONG_JOB_TIME_LIMIT_SECONDS", "300")
    expect("jobs", "warning", "1 job is not done", "1 other is running", "another monitor")
    assert store.jobs.get(behind.id).state == "queued"


def test_a_training_may_wait_for_as_long_as_another_one_may_take(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LIFELONG_JOB_TIME_LIMIT_SECONDS", "300")
    for number in range(2):
        store.jobs.submit("retrain", {"number": number}, actor="tests")
    update(store, sa.update(tables.jobs).values(created_at=NOW - timedelta(minutes=10)))
    assert store.jobs.claim("a host/1", lease_seconds=600) is not None
    expect("jobs", "ok", "1 waiting, 1 running")
    monkeypatch.setenv("LIFELONG_TRAINING_TIME_LIMIT_SECONDS", "300")
    expect("jobs", "warning", "1 job is not done", "training_devices")


def test_jobs_that_failed_lately(store: Store):
    for number in range(7):
        store.jobs.submit("validate", {}, actor="tests")
        claimed = store.jobs.claim("a host/1", lease_seconds=600)
        assert claimed is not None
        error = {"message": f"no sun {number}.\nIts last words: {'x' * 500}", "field": None, "hint": None}
        store.jobs.fail(claimed, error)
    expect("jobs", "warning", "(validate) failed at", "no sun 6.", "no sun 2.", "2 more failed within a day")
    findings = examine()[1]["jobs"]["findings"]
    assert len(findings) == 6
    assert "last words" not in findings[0]["message"]
    update(store, sa.update(tables.jobs).values(error="{"))
    expect("jobs", "warning", "is damaged")
    update(store, sa.update(tables.jobs).values(finished_at=NOW - timedelta(hours=25)))
    expect("jobs", "ok", "0 waiting, 0 running")


def test_notifications_that_are_late_or_given_up(store: Store, monkeypatch: pytest.MonkeyPatch):
    sent = store.notifications.add_test(actor="ann")
    update(store, sa.update(tables.notifications).values(due_at=NOW - timedelta(minutes=10)))
    expect("notifications", "ok", "none waits")  # no channel is set
    channel = {"url": "https://hooks.example", "secret_file": "hook.key"}
    monkeypatch.setenv("LIFELONG_NOTIFICATIONS__WEBHOOKS", json.dumps({"pager": channel}))
    expect("notifications", "warning", "1 notification is not delivered", "a monitor")
    failed = Delivery(
        channel="webhooks.pager", state="given_up", attempts=12, due_at=None, problem="no answer."
    )
    lease = store.leases.acquire("notifications", "a host/1", 60)
    assert lease is not None
    off = Delivery(channel="webhooks.pager", attempts=1, due_at=NOW + timedelta(hours=1), problem="no key.")
    store.notifications.record(sent, [off], lease=lease)
    expect("notifications", "warning", "webhooks.pager did not get", "no key.")
    store.notifications.record(sent, [failed], lease=lease, given_up=failed)
    store.leases.release(lease)
    expect(
        "notifications", "warning", "webhooks.pager did not get", "no answer.", "lifelong notifications test"
    )
    update(store, sa.update(tables.notifications).values(created_at=NOW - timedelta(hours=25)))
    expect("notifications", "ok", "none waits")


def test_label_error_rates_of_tasks_and_classes_that_do_not_exist(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    expect("label error rates", "ok", "0 by default")
    task = store.tasks.list()[0]
    rates = {task.name: {task.class_names[0]: 0.1}}
    monkeypatch.setenv("LIFELONG_TASK_LABEL_ERROR_RATES", json.dumps(rates))
    beat(store)
    expect("label error rates", "ok", "tasks with their own: 1")
    monkeypatch.setenv("LIFELONG_TASK_LABEL_ERROR_RATES", json.dumps({"lesion": {"a": 0.1}}))
    beat(store)
    expect("label error rates", "warning", "names 'lesion'", task.name)
    monkeypatch.setenv("LIFELONG_TASK_LABEL_ERROR_RATES", json.dumps({task.name: {"melanom": 0.1}}))
    beat(store)
    expect("label error rates", "failure", "no class 'melanom'", task.class_names[0])


def test_environments_that_only_the_settings_know(store: Store, monkeypatch: pytest.MonkeyPatch):
    expect("environments", "ok", "2; the mode here is auto (cycles swap heads).")
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_POLICIES", '{"clinic": {"mode": "shadow"}}')
    beat(store)
    expect("environments", "ok", "but clinic: shadow")
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_POLICIES", '{"clinik": {"mode": "shadow"}}')
    beat(store)
    words = (
        "environment_policies names 'clinik'",
        "no prediction has come from it yet",
        "Did you mean clinic?",
    )
    expect("environments", "warning", *words)
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_POLICIES", "{}")
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_RETENTION_DAYS", '{"mars": 9}')
    _, checks = examine()
    (finding,) = checks["environments"]["findings"]
    assert finding["message"].endswith("names 'mars', and no prediction has come from it yet.")


def test_summaries_that_are_wrong(store: Store):
    update(store, sa.update(tables.window_summaries).values(samples=4))
    expect("summaries", "failure", "recomputed from the log", "Do not trust")
    assert examine("--quick")[0] == 0


def test_summaries_that_are_behind(store: Store):
    log(store, prediction())
    expect("summaries", "ok")
    log(store, prediction(days_ago=0.5))
    expect("summaries", "warning", "2 predictions since", "lifelong monitor")
    fold(store)
    update(store, sa.update(tables.window_summaries).values(summary=None))
    expect("summaries", "warning", "hours have to be summarised anew")
    for table in (tables.window_summaries, tables.summary_cursors):
        update(store, sa.delete(table))
    expect("summaries", "warning", "net@1 in clinic: nothing is summarised yet")


def test_predictions_that_cannot_be_judged(store: Store):
    log(store, prediction(logits=(1, 1, 1)), prediction(logits=(1, 2)))
    fold(store)
    expect("summaries", "warning", "2 predictions cannot be judged")


def test_a_check_that_fails_itself_keeps_no_other_from_being_made(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    def broken(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setitem(examination.CHECKS, "heads", broken)
    expect("heads", "failure", "could not be made: ZeroDivisionError()")


def test_tokens_that_expire_soon_or_lately(store: Store):
    for name, days in (("soon", 13), ("late", 15), ("never", None)):
        moment = None if days is None else datetime.now(UTC) + timedelta(days=days)
        store.tokens.create(name, [Scope.READ], actor="tests", expires_at=moment)
    expect("tokens", "warning", "token soon expires", "lifelong tokens rotate soon", only=False)
    _, checks = examine()
    assert len(checks["tokens"]["findings"]) == 1
    update(store, sa.update(tables.tokens).values(expires_at=datetime.now(UTC) - timedelta(days=1)))
    expect("tokens", "warning", "token soon has expired", "token late has expired", only=False)


def test_tokens_in_use_that_reach_several_sites(store: Store, monkeypatch: pytest.MonkeyPatch):
    used, _ = store.tokens.create("gateway", [Scope.PREDICT], actor="tests")
    idle, _ = store.tokens.create("idle", [Scope.PREDICT], actor="tests")
    bound, _ = store.tokens.create("bound", [Scope.PREDICT], actor="tests", environments=["clinic"])
    reader, _ = store.tokens.create("reader", [Scope.READ], actor="tests")
    now = datetime.now(UTC)
    store.tokens.note_use({used.id: now, bound.id: now, reader.id: now, idle.id: now - timedelta(days=31)})
    monkeypatch.setenv("LIFELONG_OPEN_ACCESS", "true")
    expect("tokens", "ok", "5 valid", only=False)
    log(store, replace(prediction(), environment="default"))
    expect(
        "tokens",
        "warning",
        "token gateway may predict",
        "all 2 environments",
        "open_access is on",
        only=False,
    )
    _, checks = examine()
    assert [finding["status"] for finding in checks["tokens"]["findings"]] == ["warning", "warning"]


def test_metrics_that_need_a_token_which_nobody_has(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIFELONG_OPEN_METRICS", "false")
    expect("tokens", "warning", "needs a token", "lifelong tokens create prometheus --scope metrics")
    store.tokens.create("prometheus", [Scope.METRICS], actor="tests")
    expect("tokens", "ok", only=False)


def test_a_list_of_environments_that_fills_up(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIFELONG_MAXIMUM_ENVIRONMENTS", "2")
    expect("environments", "warning", "there are 2 environments", "lifelong environments list")
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_CREATION", "listed")
    expect("environments", "ok")


@pytest.mark.parametrize(
    ("name", "said"),
    [("CUDAExecutionProvder", "Did you mean CUDAExecutionProvider?"), ("quantum", "CPUExecutionProvider")],
)
def test_an_execution_provider_with_which_no_service_starts(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str, said: str
):
    monkeypatch.setenv("LIFELONG_EXECUTION_PROVIDERS", json.dumps([name]))
    expect("execution providers", "failure", "LIFELONG_EXECUTION_PROVIDERS", name, said)


def test_cuda_that_is_installed_and_cannot_be_started(store: Store, monkeypatch: pytest.MonkeyPatch):
    reason = "the library libcudnn.so.9 is missing."
    found = UsableProviders(("CPUExecutionProvider",), reason)
    monkeypatch.setattr(machine, "check_execution_providers", lambda _: found)
    expect("execution providers", "warning", "CUDA is installed and cannot be started", reason)
    found = UsableProviders(("CUDAExecutionProvider", "CPUExecutionProvider"))
    expect("execution providers", "ok", "CUDAExecutionProvider, CPUExecutionProvider.")


def test_workers_that_do_not_fit_the_cores(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifelong_core.configuration.serving_plan.usable_cores", lambda: 4)
    expect("cores", "ok", "4 workers with 1 thread each on 4 cores, chosen from the cores")
    monkeypatch.setenv("LIFELONG_WORKERS", "2")
    expect("cores", "ok", "2 workers with 2 threads each on 4 cores, workers as in the settings")
    monkeypatch.setenv("LIFELONG_INTRA_OP_THREADS", "1")
    expect("cores", "warning", "2 workers with 1 thread each on 4 cores: half of the cores", "Leave out")
    monkeypatch.setenv("LIFELONG_WORKERS", "5")
    expect("cores", "warning", "5 workers with 1 thread each on 4 cores: the threads take", "Leave out")


def test_workers_that_run_graphs_with_another_provider(store: Store, monkeypatch: pytest.MonkeyPatch):
    loads = {1: ModelLoad("CUDAExecutionProvider", None)}
    store.workers.record_heartbeat(
        "w1", host="ward-3", process=7, started_at=NOW, revision=store.revision(), heads={}, models=loads
    )
    expect("execution providers", "ok", "workers run graphs with CUDAExecutionProvider", only=False)
    monkeypatch.setenv("LIFELONG_EXECUTION_PROVIDERS", '["CPUExecutionProvider"]')
    expect(
        "execution providers", "warning", "CUDAExecutionProvider, which is not in the settings", only=False
    )
