"""Errors about URLs in the settings never show their secrets, and never a traceback."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from lifelong.cli import main

CANARY = "Qgeheim4711Z"
DATABASES = [
    f"postgresql://me:{CANARY}@127.0.0.1:1/db",
    f"postgresql://me@127.0.0.1:1/db?password={CANARY}&sslpassword={CANARY}",
    f"postgresql://me:{CANARY}@host:abc/db",
    f"postgresql://me:{CANARY}@[::1/db",
    f"postgresql://me:{CANARY}@127.0.0.1:1/db?foo=bar",
    f"postgresql://me:{CANARY}@/db?host=/nowhere&sslmode=wrong",
    f"postgresql://me:{CANARY}@/db?host=a,b&port=1,2,3",
    f"mysql://me:{CANARY}@host/db",
    f"sqlite://me:{CANARY}@host/lifelong.db",
    f"me:{CANARY}@host",
]
ARTIFACTS = [
    f"s3://KEY:{CANARY}@bucket/x?secret={CANARY}",
    f"foo://me:{CANARY}@host",
    f"ftp://me:{CANARY}@127.0.0.1:1/x",
    f"ftp://me:{CANARY}@host:abc/x",
    f"zip://x::ftp://me:{CANARY}@127.0.0.1:1/x",
    f"simplecache::s3://KEY:{CANARY}@bucket",
    f"https://127.0.0.1:1/x?sig={CANARY}",
    f"http://[{CANARY}",
]


Say = Callable[..., str]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Say:
    """Runs a command as from a shell; all that it prints."""
    for name in [name for name in os.environ if name.startswith("LIFELONG_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **variables: str) -> str:
        with monkeypatch.context() as patched:
            for name, value in ({"LIFELONG_DATA_DIRECTORY": str(tmp_path)} | variables).items():
                patched.setenv(name, value)
            patched.setattr(sys, "argv", ["lifelong", *arguments])
            with suppress(SystemExit):
                main()
        printed = capfd.readouterr()
        text = printed.out + printed.err
        assert "Traceback" not in text, text
        return text

    return run


@pytest.mark.parametrize("url", DATABASES)
def test_a_database_that_cannot_be_used(say: Say, url: str) -> None:
    text = say("tokens", "list", LIFELONG_DATABASE_URL=url)
    assert text.startswith("Error: ")
    assert CANARY not in text


@pytest.mark.parametrize("url", ARTIFACTS)
def test_artifacts_that_cannot_be_used(say: Say, url: str) -> None:
    text = say("init", LIFELONG_ARTIFACTS_URL=url)
    assert CANARY not in text


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_service_that_cannot_start(tmp_path: Path, log_format: str) -> None:
    variables = {
        "LIFELONG_DATA_DIRECTORY": str(tmp_path),
        "LIFELONG_DATABASE_URL": DATABASES[1],
        "LIFELONG_LOG_FORMAT": log_format,
        "LIFELONG_PORT": "1025",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")}
    done = subprocess.run(
        [sys.executable, "-m", "lifelong", "serve"],
        env=kept | variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "does not answer" in done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_settings_and_doctor(say: Say) -> None:
    for database in DATABASES[:2]:
        given = {"LIFELONG_DATABASE_URL": database, "LIFELONG_ARTIFACTS_URL": ARTIFACTS[0]}
        shown = json.loads(say("settings", "--json", **given))
        values = {row["variable"]: row["value"] for row in shown}
        assert values["LIFELONG_DATABASE_URL"].startswith("postgresql://me")
        assert values["LIFELONG_DATABASE_URL"].count("***") == database.count(CANARY)
        assert values["LIFELONG_ARTIFACTS_URL"] == "s3://KEY:***@bucket/x?secret=***"
        for command in (["settings"], ["doctor"]):
            assert CANARY not in say(*command, **given)


def test_a_setting_of_the_wrong_kind(say: Say, tmp_path: Path) -> None:
    (tmp_path / "lifelong.toml").write_text(f'database_url = ["postgresql://me:{CANARY}@host/db"]')
    text = say("settings")
    assert "database_url" in text
    assert CANARY not in text


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{CANARY}@127.0.0.1:1",
        f"http://127.0.0.1:1/?token={CANARY}",
        "http://host:abc",
        "http://\x01",
    ],
)
def test_the_address_of_a_service(say: Say, tmp_path: Path, url: str) -> None:
    for name in ("a", "b"):
        (tmp_path / "images" / name).mkdir(parents=True)
    say("init")
    text = say("calibrate", "m", "images", "--url", url, "--token", "ll_x")
    assert text.startswith("Error: ")
    assert CANARY not in text
