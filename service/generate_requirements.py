"""Write what a bento installs: `python service/generate_requirements.py`; a test fails when the file is out of date.

These are the dependencies of the package with the extras cpu and postgres, and the dependencies of those, with the
exact versions of constraints.txt. It needs a developer's installation, whose packages say what they depend on.
"""

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
REQUIREMENTS_FILE = ROOT / "service" / "requirements.txt"
EXTRAS = ("cpu", "postgres")
CONTAINER = {"python_version": "3.11", "python_full_version": "3.11.0", "sys_platform": "linux"}
"""Where a bento runs, as far as dependencies differ: docker.python_version in bentofile.yaml."""
HEADER = "# Made from pyproject.toml and constraints.txt: python service/generate_requirements.py\n"


def requirements() -> str:
    """The content of the file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    direct = [*project["dependencies"], *(text for extra in EXTRAS for text in optional[extra])]
    pins = _pins()
    lines = [f"{name}=={pins[name]}\n" for name in sorted(_closure(map(Requirement, direct)))]
    return HEADER + "".join(lines)


def _closure(direct: Iterable[Requirement]) -> set[str]:
    """Names of these packages and of all that they depend on."""
    names: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(direct)
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        names.add(name)
        waiting += [one for one in map(Requirement, requires(name) or ()) if _applies(one, extras)]
    return names


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate(CONTAINER | {"extra": extra}) for extra in ("", *extras))


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


if __name__ == "__main__":
    REQUIREMENTS_FILE.write_text(requirements(), encoding="utf-8")
    sys.stdout.write(f"wrote {REQUIREMENTS_FILE}\n")
