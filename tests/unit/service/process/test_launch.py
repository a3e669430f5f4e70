"""Errors that can be detected before BentoML starts are printed in one line, with a non-zero exit status."""

import gc
import os
import runpy
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.values.errors import ConfigurationError, LifelongError, SchemaError, UnavailableError
from lifelong_service.process import checks, launch, signals
from tests.databases import locked
from tests.integration.processes import eventually
from tests.ports import free_port

COMMAND = (sys.executable, "-m", "lifelong_service")


def environment_of(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")}
    return kept | {"LIFELONG_DATA_DIRECTORY": str(folder), "LIFELONG_PORT": str(free_port())}


def start(
    folder: Path, *, command: Sequence[str] = COMMAND, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment_of(folder) | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_missing_database_is_told_also_to_a_caller_that_ignores_the_ends_of_children(
    tmp_path: Path,
) -> None:
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        "os.execv(sys.executable, [sys.executable, '-m', 'lifelong_service'])"
    )
    done = start(tmp_path, command=(sys.executable, "-c", ignoring))
    assert done.returncode == launch.REFUSED
    assert "lifelong init" in done.stderr
    assert "Traceback" not in done.stderr


def test_closed_standard_streams_change_nothing_but_who_hears_the_reason(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m lifelong_service <&- >&- 2>&-"
    assert start(tmp_path, command=("sh", "-c", command)).returncode == launch.REFUSED


def test_files_never_get_the_numbers_of_closed_standard_streams() -> None:
    shown = (
        "import os; from lifelong_service.process.launch import open_standard_streams; open_standard_streams();"
        "print('lost'); number = os.open('/dev/null', os.O_RDONLY); os._exit(number)"
    )
    opening = f'exec {sys.executable} -c "{shown}" <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", opening], timeout=60).returncode > 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_is_broken_off_leaves_no_process_and_no_words(
    tmp_path: Path, number: signal.Signals
) -> None:
    Store.migrate(Settings(data_directory=tmp_path).resolved_database_url)
    with locked(tmp_path / "lifelong.db"):  # so long the checker waits
        process = subprocess.Popen(
            COMMAND, env=environment_of(tmp_path), cwd=tmp_path, stderr=subprocess.PIPE
        )
        try:
            eventually(psutil.Process(process.pid).children, "the checker")
            process.send_signal(number)
            # The checker has its end of the pipe, too, and would say that the file is locked.
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == -number
        assert said == b""


def test_a_signal_that_is_not_heeded_comes_again(tmp_path: Path) -> None:
    heedless = (
        "import signal, sys, time; from lifelong_service.process import signals; heard = [];"
        "signal.signal(signal.SIGTERM, lambda number, _: heard.append(number) or len(heard) < 3 or sys.exit(7));"
        "signals.insist(); print('ready', flush=True); [time.sleep(1) for _ in iter(int, 1)]"
    )
    process = subprocess.Popen([sys.executable, "-c", heedless], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.wait(60) == 7
    finally:
        process.kill()
        process.communicate()


def test_a_database_of_another_version(tmp_path: Path) -> None:
    settings = Settings(data_directory=tmp_path)
    Store.migrate(settings.resolved_database_url)
    with sqlite3.connect(tmp_path / "lifelong.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(SchemaError, match="9999"):
        checks.check_database(settings)


def test_a_database_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data_directory=tmp_path)
    Store.migrate(settings.resolved_database_url)

    def read_only(_: Store) -> None:
        raise ConfigurationError("the database is read-only.")

    checks.check_database(settings)
    monkeypatch.setattr(Store, "check_writable", read_only)
    with pytest.raises(ConfigurationError, match="read-only"):
        checks.check_database(settings)


def test_a_database_that_is_away_is_only_a_warning_where_the_registry_was_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = "postgresql+psycopg://user@127.0.0.1:1/lifelong"
    settings = Settings(data_directory=tmp_path, database_url=nobody)
    with pytest.raises(UnavailableError, match="does not answer"):
        checks.check_database(settings)
    cache = RegistryCache(settings.registry_cache_file, database_url=nobody)
    other = Settings(data_directory=tmp_path)
    Store.migrate(other.resolved_database_url)
    with Store.from_settings(other) as store:
        registry = store.registry()
    assert registry is not None
    cache.save(registry)
    checks.check_database(settings)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("the database 127.0.0.1/lifelong does not answer")
    cache.path.write_text("{}")
    with pytest.raises(UnavailableError, match="does not answer"):
        checks.check_database(settings)


def test_a_spool_that_cannot_be_written(tmp_path: Path) -> None:
    settings = Settings(data_directory=tmp_path, spool_directory=tmp_path / "taken")
    Store.migrate(settings.resolved_database_url)
    (tmp_path / "taken").touch()
    with pytest.raises(LifelongError, match=r"the spool.*LIFELONG_SPOOL_DIRECTORY"):
        checks.check_database(settings)


def test_a_wrong_setting(tmp_path: Path) -> None:
    done = start(tmp_path, LIFELONG_WORKERS="0")
    assert done.returncode == launch.REFUSED
    assert "LIFELONG_WORKERS" in done.stderr


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=str(port)):
            launch.check_port("127.0.0.1", port)
    launch.check_port("127.0.0.1", port)


def test_a_port_that_the_workers_of_a_killed_parent_release() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        threading.Timer(0.3, taken.close).start()
        launch.check_port("127.0.0.1", port, patience_seconds=60)


def test_a_host_that_is_not_here() -> None:
    with pytest.raises(ConfigurationError, match="cannot listen"):
        launch.check_port("203.0.113.1", 3000)


def test_the_environment_holds_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lifelong.toml").touch()
    found = launch.environment(Settings(data_directory=Path("data"), port=4321))
    assert found["LIFELONG_DATA_DIRECTORY"] == str(tmp_path / "data")
    assert found["LIFELONG_CONFIG"] == str(tmp_path / "lifelong.toml")
    assert Path(found["BENTOML_HOME"]) == tmp_path / "data" / "bentoml" / "4321"
    assert Path(found["BENTOML_HOME"]).is_dir()


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("3", "3")])
def test_numpy_has_one_thread_in_each_worker_unless_another_number_is_given(
    given: str | None, expected: str
) -> None:
    variables = dict(os.environ)
    variables.pop("OPENBLAS_NUM_THREADS", None)
    if given is not None:
        variables["OPENBLAS_NUM_THREADS"] = given
    program = "import lifelong_service, os; print(os.environ['OPENBLAS_NUM_THREADS'])"
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert done.stdout.strip() == expected


def test_the_starter_names_itself_as_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[dict[str, str]] = []
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(runpy, "run_module", lambda *_, **__: started.append(dict(os.environ)))
    monkeypatch.setattr(launch, "start_checker", lambda _: 1)
    monkeypatch.setattr(launch, "check_port", lambda *_, **__: None)
    try:
        launch.serve(Settings(data_directory=tmp_path))
        assert not gc.isenabled()
    finally:
        gc.enable()
        signals.end_at_once()
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert started[0][launch.PARENT] == str(os.getpid())
    assert sys.argv[:3] == ["bentoml", "serve", launch.SERVICE]
