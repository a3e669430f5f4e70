"""`lifelong fingerprint show` and `compare`: what a fingerprint is and discloses; distances between fingerprints."""

import json
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json
from lifelong.commands.fingerprint.files import read_fingerprint_file
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.develop.fingerprints.disclosure import disclosure
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.distances.registry import METHODS, default_method, find_method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint

_FIELDS = ("extractor", "samples", "seed", "features", "bins", "keywords")


@click.command(short_help="Show what a fingerprint is, and what it discloses.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@as_json
def show(file: Path, *, as_json: bool) -> None:
    """Show what the fingerprint FILE is, and what it discloses of the images."""
    fingerprint = read_fingerprint_file(file)
    found = disclosure(fingerprint)
    values = {"file": str(file), "bytes": file.stat().st_size, **_describe(fingerprint)}
    if as_json:
        echo(json.dumps({**values, "disclosure": found.to_document()}))
        return
    width = max(map(len, values))
    for name, value in values.items():
        echo(f"{name:{width}}  {', '.join(value) if isinstance(value, tuple) else value}")
    echo("\nWhat it discloses:")
    for statement in (*found.statements, *sharing_warnings(fingerprint)):
        echo(wrap_text(statement, indent="  ", first="- "))


def sharing_warnings(fingerprint: Fingerprint) -> list[str]:
    """What to know before this fingerprint is shared, beyond what every fingerprint of its kind discloses."""
    found = disclosure(fingerprint)
    if not found.describes_single_images or found.minimum_samples is None:
        return []
    return [
        f"It describes single images: it is of {found.samples} images, and needs at least {found.minimum_samples} "
        "before it is shared."
    ]


def _describe(fingerprint: Fingerprint) -> dict[str, Any]:
    values = {"kind": fingerprint.kind, "digest": fingerprint.digest}
    found = {name: getattr(fingerprint, name, None) for name in _FIELDS}
    return values | {name: value for name, value in found.items() if value is not None}


@click.command(short_help="Compare fingerprints: which sources are close to a target?")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("sources", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--method", help="One method only; without it, all that apply.")
@as_json
def compare(target: Path, sources: tuple[Path, ...], method: str | None, *, as_json: bool) -> None:
    """Compare the fingerprints of SOURCES with that of TARGET, the closest source first.

    Lower is closer; distances of different methods have different scales. Most methods are not symmetric: the target is
    the task that something is transferred to.
    """
    wanted = read_fingerprint_file(target)
    methods = applicable_methods(wanted, method)
    rows: list[dict[str, Any]] = []
    for file in sources:
        source = read_fingerprint_file(file)
        distances = {name: chosen.distance(source, wanted) for name, chosen in methods.items()}
        rows.append({"source": str(file), **distances})
    rows.sort(key=lambda row: row[next(iter(methods))])
    print_rows(rows, as_json=as_json, empty="No source.")


def applicable_methods(fingerprint: Fingerprint, name: str | None = None) -> dict[str, Method[Any]]:
    """The methods that can compare this fingerprint, by name, the default first.

    Args:
        fingerprint: of any kind.
        name: the only method; None: all.

    Raises:
        InvalidInputError: no method has this name.
    """
    if name is not None:
        return {name: find_method(name)}
    default = default_method(fingerprint)
    names = {method: known for known, method in METHODS.items()}
    found = {names.get(default, "bKLD(target)"): default}
    for known, method in METHODS.items():
        bins = getattr(method, "bins", None)
        fits = isinstance(fingerprint, method.fingerprint_type)
        if fits and bins in (None, getattr(fingerprint, "bins", None)):
            found.setdefault(known, method)
    return found
