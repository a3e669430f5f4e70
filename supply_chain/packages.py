"""The packages of an installation, and their versions.

The dependencies of the package with some of its extras, and the dependencies of those: a developer's installation says
what each of them depends on, constraints.txt says which version was tested.
"""

import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SERVING_EXTRAS = ("cpu", "postgres")
"""What service and monitor are installed with: the bento has these."""
OPTIONAL_EXTRAS = ("demo", "develop", "export", "notify", "privacy", "ray", "telemetry")
"""What users may install beside."""
CONTAINER = {"python_version": "3.11", "python_full_version": "3.11.0", "sys_platform": "linux"}
"""Where a bento runs, as far as dependencies differ: docker.python_version in bentofile.yaml."""


def pinned_packages(extras: Iterable[str]) -> dict[str, str]:
    """Canonical names and tested versions of all that the package with these extras installs, in order of the names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    direct = [*project["dependencies"], *(text for extra in extras for text in optional[extra])]
    pins = parse_pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    # What builds packages is not pinned, for it is not used.
    names = closure_of(map(Requirement, direct)) - {"setuptools"}
    return {name: pins[name] for name in sorted(names)}


def parse_pins(text: str) -> dict[str, str]:
    """Versions by canonical names, in the order of a requirements file; hashes, comments and options are left out."""
    lines = [line.removesuffix("\\").partition("#")[0].strip() for line in text.splitlines()]
    pairs = [line.split("==") for line in lines if "==" in line and not line.startswith("-")]
    return {canonicalize_name(name): version for name, version in pairs}


def closure_of(
    direct: Iterable[Requirement], *, installed: Mapping[str, list[str]] | None = None
) -> set[str]:
    """Names of these packages and of all that they depend on.

    Args:
        direct: requirements.
        installed: requirements by name; None: what this environment's packages say.
    """
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
        needed = (requires(name) or []) if installed is None else installed[name]
        waiting += [one for one in map(Requirement, needed) if _applies(one, extras)]
    return names


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate(CONTAINER | {"extra": extra}) for extra in ("", *extras))
