"""The files for Prometheus and Grafana that come with the product, and how they are written to a folder."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError

FOLDERS = ("alertmanager", "dashboards", "prometheus", "provisioning")
"""The exported parts of `grafana/`; the rest is the code that generates the dashboards."""
ADDRESSES = {
    "runbooks": "http://127.0.0.1:3000/console/runbooks",
    "service": "http://127.0.0.1:3000",
    "grafana": "http://127.0.0.1:3001",
}
"""What the links of alerts and dashboards begin with, as the files are shipped; the longest comes first."""
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._:\[\]/~%-]+")


@dataclass(frozen=True)
class Export:
    """The exported files, as paths relative to the folder.

    Attributes:
        written: new, or replaced.
        unchanged: the folder had the same content already.
    """

    written: tuple[str, ...]
    unchanged: tuple[str, ...]


def monitoring_files(**addresses: str | None) -> Mapping[str, bytes]:
    """The content of each file by its relative path, in alphabetical order.

    Args:
        addresses: other ones than in `ADDRESSES`, by their names; None: the shipped one.

    Raises:
        InvalidInputError: one of them is no address with http or https.
        ConfigurationError: the installation lacks them.
    """
    package = Path(__file__).parent
    # A wheel holds them inside of the package; a checkout, an editable installation and a bento beside it.
    candidates = (package / "grafana_files", package.parent / "grafana")
    root = next((folder for folder in candidates if (folder / FOLDERS[0]).is_dir()), None)
    if root is None:
        raise ConfigurationError(
            f"the dashboards and rules are missing beside {package}.", hint="Install lifelong again."
        )
    for name, address in addresses.items():
        if address is not None and not _ADDRESS.fullmatch(address):
            raise InvalidInputError(
                f"{address!r} is no address.",
                field=f"--{name}-url",
                hint="Give one such as https://lifelong.example.org, without question mark and blanks.",
            )
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): _with(addresses, path.read_bytes()) for path in files}


def export_monitoring_files(folder: Path, *, replace: bool = False, **addresses: str | None) -> Export:
    """Write all files to the folder, which is made if it is missing; or none of them.

    Args:
        folder: where to.
        replace: replace files with another content.
        addresses: as of `monitoring_files`.

    Raises:
        ConflictError: files with another content are there, and `replace` is not given.
        ConfigurationError: the folder cannot be written.
    """
    files = monitoring_files(**addresses)
    try:
        there = {name for name in files if (folder / name).exists()}
        unchanged = tuple(
            name for name in files if name in there and (folder / name).read_bytes() == files[name]
        )
        different = sorted(there.difference(unchanged))
        if different and not replace:
            raise ConflictError(
                f"{folder} has other versions of {', '.join(different)}.",
                field="FOLDER",
                hint="Export to a new folder and compare, or replace them with --replace.",
            )
        written = tuple(name for name in files if name not in unchanged)
        for name in written:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(files[name])
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be written: {error.strerror or error}.",
            field="FOLDER",
            hint="Choose a folder that this user can write to, on a disk with room.",
        ) from error
    return Export(written, unchanged)


def _with(addresses: Mapping[str, str | None], content: bytes) -> bytes:
    for name, shipped in ADDRESSES.items():
        if address := addresses.get(name):
            content = content.replace(shipped.encode(), address.rstrip("/").encode())
    return content
