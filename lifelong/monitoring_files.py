"""The files for Prometheus and Grafana that come with the product, and how they are written to a folder."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError

FOLDERS = ("alertmanager", "dashboards", "prometheus", "provisioning")
"""The exported parts of `grafana/`; the rest is the code that generates the dashboards."""
_SERVICE = "http://127.0.0.1:3000"
_RUNBOOKS = f"{_SERVICE}/console/runbooks"
_GRAFANA = "http://127.0.0.1:3001"
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._:\[\]/~%-]+")


@dataclass(frozen=True)
class Addresses:
    """Where the links of alerts and dashboards lead to; None: as the files are shipped, on this machine.

    Attributes:
        service: such as `https://lifelong.example.org`; its console is below.
        grafana: of Grafana.
        runbooks: of the folder of runbooks, without the name of the alert; None: they are in the console.

    Raises:
        InvalidInputError: one of them is no address with http or https.
    """

    service: str | None = None
    grafana: str | None = None
    runbooks: str | None = None

    def __post_init__(self) -> None:
        for name in ("service", "grafana", "runbooks"):
            address = getattr(self, name)
            if address is not None and not _ADDRESS.fullmatch(address):
                raise InvalidInputError(
                    f"{address!r} is no address.",
                    field=f"--{name}-url",
                    hint="Give one such as https://lifelong.example.org, without question mark and blanks.",
                )

    @property
    def for_grafana(self) -> str:
        """The address of Grafana, the shipped one if there is no other."""
        return self.grafana or _GRAFANA

    def put_into(self, content: bytes) -> bytes:
        """Return the content of a file with these addresses."""
        text = content.decode()
        # The runbooks first: their shipped address begins with that of the service.
        for shipped, wanted in (
            (_RUNBOOKS, self.runbooks),
            (_SERVICE, self.service),
            (_GRAFANA, self.grafana),
        ):
            if wanted is not None:
                text = text.replace(shipped, wanted.rstrip("/"))
        return text.encode()


AS_SHIPPED = Addresses()


@dataclass(frozen=True)
class Export:
    """The exported files, as paths relative to the folder.

    Attributes:
        written: new, or replaced.
        unchanged: the folder had the same content already.
    """

    written: tuple[str, ...]
    unchanged: tuple[str, ...]


def monitoring_files(addresses: Addresses = AS_SHIPPED) -> Mapping[str, bytes]:
    """The content of each file by its relative path, in alphabetical order.

    Raises:
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
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): addresses.put_into(path.read_bytes()) for path in files}


def export_monitoring_files(
    folder: Path, addresses: Addresses = AS_SHIPPED, *, replace: bool = False
) -> Export:
    """Write all files to the folder, which is made if it is missing; or none of them.

    Args:
        folder: where to.
        addresses: of the links in alerts and dashboards.
        replace: replace files with another content.

    Raises:
        ConflictError: files with another content are there, and `replace` is not given.
        ConfigurationError: the folder cannot be written.
    """
    files = monitoring_files(addresses)
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
