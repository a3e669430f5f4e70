"""Compare pinned packages with known vulnerabilities, without a network.

Download OSV's archive for PyPI (all.zip, see https://osv.dev) where there is a network, carry it over, and run

    python -m supply_chain.vulnerabilities all.zip
    python -m supply_chain.vulnerabilities all.zip --requirements constraints.txt

Exit status: 0 nothing was found, 1 something was, 2 the files cannot be used. The format is that of https://ossf.github.io/osv-schema.
"""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import click
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from lifelong.printing import echo
from supply_chain.packages import ROOT, parse_pins

ACCEPTED_FILE = ROOT / "supply_chain" / "accepted_vulnerabilities.toml"


@dataclass(frozen=True)
class Vulnerability:
    """A pinned version that an advisory names."""

    package: str
    version: str
    identifiers: tuple[str, ...]
    """of the advisory, then its aliases (CVE, GHSA, PYSEC)"""
    fixed: tuple[str, ...]
    """versions without it, of all branches; none is known where this is empty"""
    summary: str

    def line(self) -> str:
        """One line for people."""
        fixed = f"fixed in {', '.join(self.fixed)}" if self.fixed else "no fixed version is known"
        return (
            f"{self.package} {self.version}: {', '.join(self.identifiers)}; {fixed}. {self.summary}".rstrip()
        )


@dataclass(frozen=True)
class Acceptance:
    """Why a vulnerability does no harm here, and until when that judgement holds."""

    reason: str
    until: date


class AdvisoriesError(Exception):
    """A file does not hold what it should."""


def read_advisories(path: Path) -> Iterator[dict[str, Any]]:
    """The advisories of a zip file or a folder of JSON files, or of one JSON file with an advisory or a list of them.

    Raises:
        AdvisoriesError: a file cannot be read or is no advisory.
    """
    try:
        if path.is_dir():
            for file in sorted(path.rglob("*.json")):
                yield from _parse(file.read_bytes(), file.name)
        elif path.suffix == ".zip":
            with ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".json"):
                        yield from _parse(archive.read(name), name)
        else:
            yield from _parse(path.read_bytes(), path.name)
    except (OSError, BadZipFile) as error:
        raise AdvisoriesError(f"{path} cannot be read: {error}.") from error


def find_vulnerabilities(
    pins: Mapping[str, str], advisories: Sequence[Mapping[str, Any]]
) -> list[Vulnerability]:
    """Which pinned versions the advisories name, in order of the packages; withdrawn advisories do not count.

    Args:
        pins: versions by canonical names.
        advisories: of any ecosystem; only PyPI counts.
    """
    found: list[Vulnerability] = []
    for advisory in advisories:
        if advisory.get("withdrawn"):
            continue
        identifiers = tuple(dict.fromkeys([advisory["id"], *advisory.get("aliases", ())]))
        summary = str(advisory.get("summary") or "").strip()
        for affected in _of_python(advisory):
            name = canonicalize_name(affected["package"]["name"])
            if name in pins and _is_affected(affected, pins[name]):
                found.append(Vulnerability(name, pins[name], identifiers, _fixed_in(affected), summary))
    return sorted(found, key=lambda one: (one.package, one.identifiers))


def read_acceptances(path: Path) -> dict[str, Acceptance]:
    """By identifier, what was judged to do no harm.

    Raises:
        AdvisoriesError: the file cannot be read, or an entry lacks `reason` or `until`.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: Acceptance(str(one["reason"]), one["until"]) for name, one in document.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdvisoriesError(f"{path} cannot be read: {error!r}.") from error


def _read_pins(path: Path) -> dict[str, str]:
    pins = parse_pins(path.read_text(encoding="utf-8"))
    if not pins:
        raise AdvisoriesError(f"{path} pins no package (name==version).")
    return pins


def _read_python_advisories(path: Path) -> list[dict[str, Any]]:
    known = [one for one in read_advisories(path) if any(True for _ in _of_python(one))]
    if not known:
        raise AdvisoriesError(
            f"{path} holds no advisory about Python packages: is it OSV's archive for PyPI?"
        )
    return known


def _parse(content: bytes, name: str) -> Iterator[dict[str, Any]]:
    try:
        document: Any = json.loads(content)
    except ValueError as error:
        raise AdvisoriesError(f"{name} is no JSON: {error}.") from error
    for one in document if isinstance(document, list) else [document]:
        if not isinstance(one, dict) or not isinstance(one.get("id"), str):
            raise AdvisoriesError(f"{name} holds something that is no OSV advisory: it has no id.")
        yield one


def _of_python(advisory: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for affected in advisory.get("affected", ()):
        if affected.get("package", {}).get("ecosystem") == "PyPI":
            yield affected


def _is_affected(affected: Mapping[str, Any], text: str) -> bool:
    """By the algorithm of the OSV schema: a listed version, or one in a range."""
    version = Version(text)
    if any(_same(version, other) for other in affected.get("versions", ())):
        return True
    return any(_holds(events, version) for events in _ranges(affected))


def _ranges(affected: Mapping[str, Any]) -> Iterator[Sequence[Mapping[str, str]]]:
    for one in affected.get("ranges", ()):
        if one.get("type") == "ECOSYSTEM":
            yield one.get("events", ())


def _holds(events: Sequence[Mapping[str, str]], version: Version) -> bool:
    """Whether a range holds a version; one whose ends cannot be read holds every version."""
    try:
        ordered = sorted((Version(text), kind) for event in events for kind, text in event.items())
    except InvalidVersion:
        return True
    inside = False
    for bound, kind in ordered:
        if kind == "introduced" and version >= bound:
            inside = True
        elif (kind == "fixed" and version >= bound) or (kind == "last_affected" and version > bound):
            inside = False
    return inside


def _same(version: Version, text: str) -> bool:
    try:
        return version == Version(text)
    except InvalidVersion:
        return str(version) == text


def _fixed_in(affected: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(event["fixed"] for events in _ranges(affected) for event in events if "fixed" in event)


@click.command(help=(__doc__ or "").replace("\n\n    python", "\n\n\b\n    python"))
@click.argument("advisories", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--requirements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=ROOT / "service" / "requirements.txt",
    help="Pinned packages (name==version); by default what the bento installs.",
)
@click.option(
    "--accepted",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=ACCEPTED_FILE,
    help="TOML file with the identifiers that were judged harmless, each with reason and until.",
)
def main(advisories: Path, requirements: Path, accepted: Path) -> None:
    """Print what is found."""
    try:
        pins, known = _read_pins(requirements), _read_python_advisories(advisories)
        acceptances = read_acceptances(accepted)
    except AdvisoriesError as error:
        echo(f"Error: {error}", fg="red", err=True)
        sys.exit(2)
    newest = max((str(one.get("modified", "")) for one in known), default="")
    today, harmful = datetime.now(UTC).date(), 0
    for one in find_vulnerabilities(pins, known):
        acceptance = next((acceptances[name] for name in one.identifiers if name in acceptances), None)
        if acceptance is not None and today <= acceptance.until:
            echo(f"accepted until {acceptance.until}: {one.line()} ({acceptance.reason})")
        else:
            harmful += 1
            echo(one.line(), fg="red")
    echo(f"{len(pins)} packages, {len(known)} advisories, the newest of {newest[:10]}: {harmful} to fix.")
    sys.exit(1 if harmful else 0)


if __name__ == "__main__":
    main()
