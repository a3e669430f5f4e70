"""`lifelong fingerprint show`: what a fingerprint is, and what it discloses."""

import json
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json
from lifelong.commands.fingerprint.files import read_fingerprint_file


@click.command(short_help="Show what a fingerprint is, and what it discloses.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@as_json
def show(file: Path, *, as_json: bool) -> None:
    """Show what the fingerprint FILE is, and what it discloses of the images."""
    fingerprint = read_fingerprint_file(file)
    values: dict[str, Any] = {
        "file": str(file),
        "kind": fingerprint.kind,
        "bytes": file.stat().st_size,
        "digest": fingerprint.digest,
        "shareable": fingerprint.is_shareable,
    }
    for name in ("extractor", "samples", "seed", "features", "bins", "keywords"):
        value = getattr(fingerprint, name, None)
        if value is not None:
            values[name] = value
    if as_json:
        click.echo(json.dumps(values))
        return
    width = max(map(len, values))
    for name, value in values.items():
        click.echo(f"{name:{width}}  {_text(value)}")
    if not fingerprint.is_shareable:
        click.echo("It holds features of single images, which can identify them: do not share it.")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
