"""Real disks in a bad state, in a mount namespace that ends with the process.

`test_database_errors` runs it without the right to overrule permissions, which root would have; it writes what each
call said, as JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.store import Store
from lifelong_core.values.errors import LifelongError

PORT = "39017"


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def fill(folder: Path) -> Path:
    """Leave not a byte."""
    filler = folder / "filler"
    descriptor = os.open(filler, os.O_CREAT | os.O_WRONLY)
    for size in (4096, 1):
        try:
            while True:
                os.write(descriptor, b"x" * size)
        except OSError:
            continue
    os.close(descriptor)
    return filler


def said(call: Callable[[], object]) -> str:
    """The class of what the product said, and its words; empty if all went well."""
    try:
        call()
    except LifelongError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def process(folder: Path, module: str) -> str:
    """What a process that cannot start wrote to standard error, after its exit status."""
    settings = {"LIFELONG_DATA_DIRECTORY": str(folder)}
    settings |= {"LIFELONG_PORT": PORT, "LIFELONG_MONITOR_PORT": PORT}
    done = subprocess.run(
        [sys.executable, "-m", module],
        env=os.environ | settings,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return f"{done.returncode}: {done.stderr}"


def init(folder: Path) -> None:
    variables = {"LIFELONG_DATA_DIRECTORY": str(folder)}
    CliRunner().invoke(cli, ["init"], env=variables, catch_exceptions=False)


def main(folder: Path) -> dict[str, str]:
    mount("-t", "tmpfs", "-o", "size=2m", "none", str(folder))
    url = f"sqlite:///{folder}/lifelong.db"

    def opened() -> None:
        with Store.open(url, "memory://x") as store:
            store.check_writable()

    heard: dict[str, str] = {}
    filler = fill(folder)
    heard["full, init"] = said(lambda: init(folder))
    filler.unlink()
    (folder / "lifelong.db").unlink(missing_ok=True)
    Store.migrate(url)
    (folder / "bentoml" / PORT).mkdir(parents=True)
    filler = fill(folder)
    heard["full, open"] = said(opened)
    heard["full, serve"] = process(folder, "lifelong_service")
    filler.unlink()
    with Store.open(url, "memory://x") as store:
        store.check_writable()
        filler = fill(folder)
        # What the files have grown to already takes some commits more.
        heard["full, running"] = next(filter(None, (said(store.check_writable) for _ in range(2000))))
        heard["full, reading"] = said(store.environments.list)
        filler.unlink()
        heard["room again"] = said(store.check_writable)
    mount("-o", "remount,ro", str(folder))
    heard["read-only, open"] = said(opened)
    heard["read-only, monitor"] = process(folder, "lifelong_monitor")
    heard["read-only, init"] = said(lambda: init(folder))
    heard["read-only, no folder"] = said(lambda: Store.migrate(f"sqlite:///{folder}/new/lifelong.db"))
    mount("-o", "remount,rw", str(folder))
    with Store.open(url, "memory://x") as store:
        store.check_writable()
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        mount("--bind", str(folder), str(elsewhere))
        mount("-o", "remount,bind,ro", str(elsewhere))
        other = Store.open(f"sqlite:///{elsewhere}/lifelong.db", "memory://x")
        heard["read-only for one of two"] = said(other.check_writable)
        other.close()
    folder.chmod(0o555)
    heard["folder of another user"] = said(opened)
    folder.chmod(0o755)
    (folder / "lifelong.db").chmod(0o444)
    heard["file of another user"] = said(opened)
    return heard


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
