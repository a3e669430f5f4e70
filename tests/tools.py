"""Requirements of some tests beside the `dev` extra: programs, privileges and data that pip cannot install.

Outside CI a test without them is skipped, and the last line of the run counts such tests. Under CI=true it fails.
"""

import functools
import os
import shutil
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

_WANTING = "for want of "


@dataclass(frozen=True)
class Tool:
    """Something that a test cannot do without.

    Attributes:
        name: for people.
        remedy: how to get it.
        programs: names of the program, the usual one first; empty: it is no program.
        problem: why this process cannot use it; None if it can.
    """

    name: str
    remedy: str
    programs: tuple[str, ...] = ()
    problem: Callable[[], str | None] = lambda: None


@functools.cache
def mount_problem() -> str | None:
    """Why this process cannot mount a small disk; None if it can."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder],
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError:
            return "there is no program mount"
        if done.returncode:
            return done.stderr.strip() or "mount failed"
        subprocess.run(["umount", folder], check=True)
        return None


@functools.cache
def ipv6_problem() -> str | None:
    """Why this process cannot listen on IPv6; None if it can."""
    try:
        with socket.socket(socket.AF_INET6) as end:
            end.bind(("::1", 0))
    except OSError as error:
        return error.strerror
    return None


@functools.cache
def filter_problem() -> str | None:
    """Why this process cannot let packets vanish; None if it can."""
    from tests.faults.network import attach_filter

    try:
        with socket.socket() as end:
            attach_filter(end)
    except OSError as error:
        return f"a socket takes no packet filter: {error.strerror}"
    return None


_APT_PROMETHEUS = "Debian: apt-get install prometheus"
PROMETHEUS = Tool("prometheus", _APT_PROMETHEUS, ("prometheus",))
PROMTOOL = Tool("promtool", _APT_PROMETHEUS, ("promtool",))
AMTOOL = Tool("amtool", "Debian: apt-get install prometheus-alertmanager", ("amtool",))
CHROMIUM = Tool(
    "chromium", "Debian: apt-get install chromium", ("chromium", "chromium-browser", "google-chrome")
)
CURL = Tool("curl", "Debian: apt-get install curl", ("curl",))
NGINX = Tool("nginx", "Debian: apt-get install nginx-light", ("nginx",))
OPENSSL = Tool("openssl", "Debian: apt-get install openssl", ("openssl",))
IPV6 = Tool("IPv6", "a kernel with IPv6 on the loopback interface", problem=ipv6_problem)
STRACE = Tool("strace", "Debian: apt-get install strace", ("strace",))
GIT = Tool("git", "a clone of the repository, and git", ("git",))
SMALL_DISKS = Tool(
    "small disks", "run as root, or in `unshare -Urm`, where tmpfs may be mounted", problem=mount_problem
)
PACKET_FILTERS = Tool("packet filters", "run as root, on Linux", problem=filter_problem)
DISK_NAMESPACES = Tool(
    "disks in a namespace", "run as root, where unshare, setpriv and mount are allowed to make tmpfs"
)
REAL_LOGITS = Tool("real logits", "set LIFELONG_SHARED_DATA to the folder that holds logits/*.npz")
REFERENCE = Tool(
    "reference results", "set LIFELONG_SHARED_DATA to a folder beside which metrics/*.yaml|json lie"
)
TRANSFER_OUTCOMES = Tool(
    "transfer outcomes", "set LIFELONG_SHARED_DATA to the folder that holds transfer/*.npz"
)


def program(tool: Tool) -> str:
    """The path of the program; without it the test is skipped, or fails under CI."""
    found = next((path for name in tool.programs if (path := shutil.which(name))), None)
    return found if found is not None else give_up(tool)


def give_up(tool: Tool, reason: str = "") -> NoReturn:
    """Skip the test, or fail it under CI."""
    text = f"{_WANTING}{tool.name} ({tool.remedy})" + (f": {reason}" if reason else "")
    if is_ci():
        pytest.fail(f"{text}; under CI=true nothing may be missing", pytrace=False)
    pytest.skip(text, allow_module_level=True)


def is_ci() -> bool:
    """Whether this run must not leave anything out."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def has_deadlines() -> bool:
    """Whether deadlines of the product are asserted: in full forms, which have the machine to themselves."""
    return os.environ.get("TEST_DEADLINES", "").lower() in ("1", "true", "yes")


def need(tool: Tool) -> None:
    """Give up where the tool cannot be used."""
    if (problem := tool.problem()) is not None:
        give_up(tool, problem)


def real_logits() -> Path:
    """The folder with the real logits; without it the test is skipped, or fails under CI."""
    folder = _shared_data() / "logits"
    return folder if folder.is_dir() else give_up(REAL_LOGITS, f"there is no folder {folder}")


def reference(name: str) -> Path:
    """A file of the reference results; without it the test, or its module, is skipped, or fails under CI."""
    file = _shared_data().parent / "metrics" / name
    return file if file.is_file() else give_up(REFERENCE, f"there is no file {file}")


def transfer_folder() -> Path:
    """The folder of measured transfers between tasks; without it the test is skipped, or fails under CI."""
    folder = _shared_data() / "transfer"
    return folder if folder.is_dir() else give_up(TRANSFER_OUTCOMES)


def _shared_data() -> Path:
    """The folder that LIFELONG_SHARED_DATA names, else ../shared/data."""
    named = os.environ.get("LIFELONG_SHARED_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


def count_line(reasons: list[str]) -> str | None:
    """How many tests were skipped for want of which tools, by the reasons of all skipped tests; None: none was."""
    wanted = Counter(
        reason.partition(_WANTING)[2].partition("): ")[0].rstrip(")")
        for reason in reasons
        if _WANTING in reason
    )
    if not wanted:
        return None
    total = sum(wanted.values())
    parts = [f"{count} {what})" for what, count in wanted.most_common()]
    return f"{total} {'test' if total == 1 else 'tests'} skipped for want of: {'; '.join(parts)}"
