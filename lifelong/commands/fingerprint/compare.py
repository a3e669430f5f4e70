"""`lifelong fingerprint compare`: distances between fingerprints."""

from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json
from lifelong.commands.fingerprint.files import read_fingerprint_file
from lifelong.commands.tables import print_rows
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.distances.registry import METHODS, default_method, find_method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint


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
