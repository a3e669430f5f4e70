"""Write docs/licences.md: the licence of every package that users install. `python -m supply_chain.licences`.

A licence comes from the package's metadata: an SPDX expression, or a classifier that means only one licence. Where they
do not say, `reviewed` in licences.toml does. A test refuses licences that are unknown or not permitted.
"""

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import metadata
from typing import Any

from license_expression import ExpressionError, Licensing, get_spdx_licensing

from supply_chain.packages import OPTIONAL_EXTRAS, ROOT, SERVING_EXTRAS, pinned_packages

RULES_FILE = ROOT / "supply_chain" / "licences.toml"
LIST_FILE = ROOT / "docs" / "licences.md"
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Those that mean one licence; 'BSD License', for example, may be one of four."""
_SPDX: Licensing = get_spdx_licensing()


@dataclass(frozen=True)
class Rules:
    """Which licences packages may have, as SPDX identifiers."""

    permitted: frozenset[str]
    exceptions: Mapping[str, str]
    """by package, a licence that is permitted for it alone"""
    reviewed: Mapping[str, str]
    """by package, its licence where its metadata do not say it"""

    @classmethod
    def load(cls) -> "Rules":
        """Those of licences.toml."""
        document = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
        exceptions = {name: licence for name, (licence, _reason) in document["exceptions"].items()}
        return cls(frozenset(document["permitted"]), exceptions, document["reviewed"])


class RefusedLicenceError(Exception):
    """A licence is unknown or not permitted."""


def declared_licence(package: str) -> str | None:
    """The SPDX expression that the metadata of an installed package give; None: they give none."""
    found = metadata(package).json
    expression = found.get("license_expression")
    if expression:
        return str(expression)
    stated = str(found.get("license", "")).strip()
    if _is_spdx(stated):
        return stated
    classifiers = (one.rpartition(" :: ")[2] for one in found.get("classifier", ()) if "License ::" in one)
    known = {_CLASSIFIERS.get(one) for one in classifiers}
    return known.pop() if len(known) == 1 else None


def licence_of(package: str, rules: Rules) -> str:
    """The SPDX expression of an installed package.

    Raises:
        RefusedLicenceError: neither its metadata nor the rules give one.
    """
    licence = rules.reviewed.get(package) or declared_licence(package)
    if licence is None:
        raise RefusedLicenceError(
            f"{package}: its metadata name no SPDX licence. Read its licence file and add it to `reviewed` in"
            f" {RULES_FILE.name}."
        )
    return licence


def check_licence(package: str, licence: str, rules: Rules) -> None:
    """Make sure that a package may be used: one of alternatives is enough (OR), all that apply together count (AND).

    Raises:
        RefusedLicenceError: the licence is no SPDX expression, or not permitted.
    """
    if not _is_spdx(licence):
        raise RefusedLicenceError(f"{package}: {licence!r} is no SPDX expression.")
    permitted = rules.permitted | {rules.exceptions.get(package, "")}
    if not _is_permitted(_SPDX.parse(licence), permitted):
        raise RefusedLicenceError(f"{package}: {licence} is not permitted (supply_chain/{RULES_FILE.name}).")


def licence_list() -> str:
    """The content of docs/licences.md.

    Raises:
        RefusedLicenceError: a licence is unknown or not permitted.
    """
    rules = Rules.load()
    serving = pinned_packages(SERVING_EXTRAS)
    every = pinned_packages((*SERVING_EXTRAS, *OPTIONAL_EXTRAS))
    others = {name: version for name, version in every.items() if name not in serving}
    return _TEXT.format(
        serving=_table(serving, rules), others=_table(others, rules), extras=", ".join(OPTIONAL_EXTRAS)
    )


def _table(packages: Mapping[str, str], rules: Rules) -> str:
    rows: list[str] = []
    for name, version in packages.items():
        licence = licence_of(name, rules)
        check_licence(name, licence, rules)
        rows.append(f"| {name} | {version} | {licence} |\n")
    return "| package | version | licence |\n|---|---|---|\n" + "".join(rows)


def _is_spdx(licence: str) -> bool:
    try:
        return bool(licence) and _SPDX.parse(licence, validate=True) is not None
    except ExpressionError:
        return False


def _is_permitted(expression: Any, permitted: frozenset[str]) -> bool:
    if isinstance(expression, _SPDX.OR):
        return any(_is_permitted(part, permitted) for part in expression.args)
    if isinstance(expression, _SPDX.AND):
        return all(_is_permitted(part, permitted) for part in expression.args)
    return str(expression) in permitted


_TEXT = """\
# Licences

lifelong is under [Apache-2.0](../LICENSE). These are the licences of what it installs, as SPDX expressions, made by
`python -m supply_chain.licences` from the metadata of the packages; a test refuses licences that are unknown or not in
`supply_chain/licences.toml`. Wheels may hold further libraries (OpenBLAS, libpq, libjpeg ...); their licences are in
the wheels. With an NVIDIA GPU, `onnxruntime-gpu` (MIT) takes the place of `onnxruntime`, and a build of torch for CUDA
installs NVIDIA's own libraries, as the extra `gpu` does; they are under NVIDIA's licences and not listed here.

## In the repository

The console serves htmx 2.0.10 unchanged (`service/lifelong_service/console/htmx-2.0.10.min.js`, 0BSD).

## Service and monitor

What a bento installs (`service/requirements.txt`).

{serving}
## With extras

What the extras {extras} install beside.

{others}"""


if __name__ == "__main__":
    try:
        LIST_FILE.write_text(licence_list(), encoding="utf-8")
    except RefusedLicenceError as error:
        sys.exit(str(error))
    sys.stdout.write(f"wrote {LIST_FILE}\n")
