"""Advisories are compared with pinned versions as the OSV schema says, without a network."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from click.testing import CliRunner, Result

from supply_chain.vulnerabilities import find_vulnerabilities, main


def advisory(
    identifier: str = "GHSA-7f5h-v6xp-fcq8",
    package: str = "starlette",
    *events: dict[str, str],
    versions: tuple[str, ...] = (),
    ecosystem: str = "PyPI",
    **more: Any,
) -> dict[str, Any]:
    """As OSV exports them; that of Starlette's Range header by default."""
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events or not versions else []
    if ranges and not events:
        ranges[0]["events"] = [{"introduced": "0.39.0"}, {"fixed": "0.49.1"}]
    affected = {
        "package": {"name": package, "ecosystem": ecosystem},
        "ranges": ranges,
        "versions": list(versions),
    }
    document = {"id": identifier, "aliases": ["CVE-2025-62727"], "modified": "2026-11-01T00:00:00Z"}
    return {**document, "summary": "Quadratic time", "affected": [affected], **more}


@pytest.mark.parametrize(
    ("version", "is_found"),
    [("0.38.6", False), ("0.39.0", True), ("0.49.0", True), ("0.49.1", False), ("0.49.1rc1", True)],
)
def test_a_range_begins_where_it_is_introduced_and_ends_where_it_is_fixed(version: str, *, is_found: bool):
    assert bool(find_vulnerabilities({"starlette": version}, [advisory()])) is is_found


@pytest.mark.parametrize(
    ("events", "version", "is_found"),
    [
        (({"introduced": "0"},), "1.0", True),
        (({"introduced": "0"}, {"last_affected": "2.0"}), "2.0", True),
        (({"introduced": "0"}, {"last_affected": "2.0"}), "2.0.1", False),
        (({"introduced": "3"}, {"fixed": "3.2"}, {"introduced": "0"}, {"fixed": "2.5"}), "2.6", False),
        (({"introduced": "3"}, {"fixed": "3.2"}, {"introduced": "0"}, {"fixed": "2.5"}), "3.1", True),
        (({"introduced": "0"}, {"fixed": "unreadable"}), "9", True),
    ],
)
def test_ranges_of_several_branches(events: tuple[dict[str, str], ...], version: str, *, is_found: bool):
    found = find_vulnerabilities({"some-package": version}, [advisory("A-1", "Some.Package", *events)])
    assert bool(found) is is_found


def test_listed_versions_are_compared_as_versions():
    listed = advisory("A-1", "numpy", versions=("1.0", "2.4.6.0", "0.1dev-r5"))
    assert find_vulnerabilities({"numpy": "2.4.6"}, [listed])
    assert not find_vulnerabilities({"numpy": "2.4.7"}, [listed])


def test_what_does_not_concern_is_left_out():
    others = [
        advisory(withdrawn="2026-01-01T00:00:00Z"),
        advisory(ecosystem="npm"),
        advisory(package="another"),
    ]
    assert find_vulnerabilities({"starlette": "0.40.0"}, others) == []


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.txt"
    file.write_text(f"starlette==0.40.0 \\\n    --hash=sha256:{'0' * 64}\nnumpy==2.4.6\n")
    return file


def check(advisories: Path, lock: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [str(advisories), "--requirements", str(lock), *arguments])


def archive(folder: Path, *advisories: dict[str, Any]) -> Path:
    file = folder / "all.zip"
    with ZipFile(file, "w") as opened:
        for one in advisories:
            opened.writestr(f"{one['id']}.json", json.dumps(one))
    return file


def test_an_archive_is_compared_with_the_lock(tmp_path: Path, lock: Path):
    done = check(archive(tmp_path, advisory(), advisory("A-1", "numpy", {"introduced": "3"})), lock)
    assert done.exit_code == 1
    assert done.output == (
        "starlette 0.40.0: GHSA-7f5h-v6xp-fcq8, CVE-2025-62727; fixed in 0.49.1. Quadratic time\n"
        "2 packages, 2 advisories, the newest of 2026-11-01: 1 to fix.\n"
    )


def test_a_folder_or_one_file_does_as_well(tmp_path: Path, lock: Path):
    folder = tmp_path / "advisories"
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(advisory()))
    (folder / "more.json").write_text(json.dumps([advisory("A-1", "numpy", {"introduced": "3"})]))
    assert check(folder, lock).exit_code == 1
    assert check(folder / "more.json", lock).exit_code == 0


def test_the_lock_of_the_bento_is_the_default(tmp_path: Path):
    old = advisory("A-1", "starlette", {"introduced": "0"}, {"fixed": "0.49.1"})
    done = CliRunner().invoke(main, [str(archive(tmp_path, old))])
    assert done.exit_code == 0, done.output
    every = advisory("A-2", "starlette", {"introduced": "0"})
    assert CliRunner().invoke(main, [str(archive(tmp_path, every))]).exit_code == 1


@pytest.mark.parametrize(("until", "status"), [("2999-01-01", 0), ("2020-01-01", 1)])
def test_what_was_judged_harmless_is_accepted_for_a_time(tmp_path: Path, lock: Path, until: str, status: int):
    accepted = tmp_path / "accepted.toml"
    accepted.write_text(f'[CVE-2025-62727]\nreason = "no files are served"\nuntil = {until}\n')
    done = check(archive(tmp_path, advisory()), lock, "--accepted", str(accepted))
    assert done.exit_code == status
    assert ("no files are served" in done.output) is (status == 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no zip", "cannot be read"),
        (b'{"no": "id"}', "no OSV advisory"),
        (b"{", "no JSON"),
        (json.dumps(advisory(ecosystem="npm")).encode(), "no advisory about Python packages"),
    ],
)
def test_files_that_are_something_else_are_an_error(tmp_path: Path, lock: Path, content: bytes, words: str):
    file = tmp_path / ("all.zip" if content == b"no zip" else "one.json")
    file.write_bytes(content)
    done = check(file, lock)
    assert done.exit_code == 2
    assert words in done.output


def test_a_lock_without_pins_and_an_acceptance_without_a_reason_are_errors(tmp_path: Path, lock: Path):
    lock.write_text("starlette\n")
    assert "pins no package" in check(archive(tmp_path, advisory()), lock).output
    lock.write_text("starlette==1\n")
    accepted = tmp_path / "accepted.toml"
    accepted.write_text("[CVE-2025-62727]\nuntil = 2999-01-01\n")
    done = check(archive(tmp_path, advisory()), lock, "--accepted", str(accepted))
    assert (done.exit_code, "cannot be read" in done.output) == (2, True)
