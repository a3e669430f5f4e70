"""Write what the bento installs: `python -m supply_chain.lock`.

The versions are those of constraints.txt; uv asks the package index for the SHA-256 of every file of each version, so
that pip refuses a file that was changed since. A test fails when names or versions are out of date, without a network.
"""

import shutil
import subprocess
import sys

from supply_chain.packages import CONTAINER, ROOT, SERVING_EXTRAS, pinned_packages

LOCK_FILE = ROOT / "service" / "requirements.txt"
HEADER = "# Made from pyproject.toml and constraints.txt: python -m supply_chain.lock\n"


def with_hashes(pins: dict[str, str]) -> str:
    """The content of the lock file: each package with its version and the hashes of its files.

    Raises:
        subprocess.CalledProcessError: the index does not answer, or does not know a version.
    """
    uv = shutil.which("uv")
    if uv is None:
        raise SystemExit("uv is not installed: pip install uv")
    command = [
        uv,
        "pip",
        "compile",
        "-",
        "--no-deps",
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--quiet",
    ]
    target = ["--python-version", CONTAINER["python_version"], "--python-platform", CONTAINER["sys_platform"]]
    pinned = "".join(f"{name}=={version}\n" for name, version in pins.items())
    done = subprocess.run([*command, *target], input=pinned, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - a program by name, no shell
    return HEADER + done.stdout


if __name__ == "__main__":
    LOCK_FILE.write_text(with_hashes(pinned_packages(SERVING_EXTRAS)), encoding="utf-8")
    sys.stdout.write(f"wrote {LOCK_FILE}\n")
