"""`lifelong fingerprint show`: what a fingerprint is, and what it discloses."""

import json
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json
from lifelong.commands.fingerprint.files import read_fingerprint_file
from lifelong.commands.tables import wrap_text
from lifelong.printing import echo
from lifelong_core.develop.fingerprints.disclosure import disclosure
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
