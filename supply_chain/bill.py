"""Make the bill of materials of an installation: `python -m supply_chain.bill PYTHON bill.json`.

PYTHON is the interpreter of an environment with what service/requirements.txt locks. The bill is CycloneDX JSON, made
and validated by cyclonedx-py: versions, licences and dependencies, for scanners and auditors. It must hold all that the
lock names, in the same versions, and nothing else.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from packaging.utils import canonicalize_name

from lifelong.printing import echo
from supply_chain.lock import LOCK_FILE
from supply_chain.packages import ROOT, parse_pins

INSTALLERS = frozenset({"pip", "setuptools", "wheel"})
"""A fresh environment holds them; the product needs none."""


def make_bill(python: Path, output: Path) -> None:
    """Write the bill of an environment, valid by the schema of CycloneDX and free of what differs from run to run.

    Raises:
        subprocess.CalledProcessError: the environment cannot be read.
    """
    options = ["--output-reproducible", "--validate", "--pyproject", str(ROOT / "pyproject.toml")]
    command = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        *options,
        "--output-file",
        str(output),
        str(python),
    ]
    subprocess.run(command, check=True)  # noqa: S603 - no shell


def differences(bill: Mapping[str, Any], pins: Mapping[str, str]) -> list[str]:
    """Where bill and lock differ, as sentences."""
    components = {canonicalize_name(one["name"]): one.get("version") for one in bill.get("components", ())}
    missing = [
        f"{name} {version} is locked, but not in the bill."
        for name, version in pins.items()
        if name not in components
    ]
    other = [
        f"{name} {version} is in the bill, but the lock says {pins[name]}."
        for name, version in components.items()
        if name in pins and version != pins[name]
    ]
    foreign = [
        f"{name} {version} is in the bill, but not locked."
        for name, version in components.items()
        if name not in pins and name not in INSTALLERS
    ]
    return missing + other + foreign


@click.command(help=__doc__)
@click.argument("python", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
def main(python: Path, output: Path) -> None:
    """Make the bill and compare it."""
    make_bill(python, output)
    bill = json.loads(output.read_text(encoding="utf-8"))
    found = differences(bill, parse_pins(LOCK_FILE.read_text(encoding="utf-8")))
    for sentence in found:
        echo(sentence, fg="red", err=True)
    if found:
        sys.exit(1)
    echo(f"wrote {output}: {len(bill['components'])} packages.")


if __name__ == "__main__":
    main()
