"""`python -m tests.pictures [FOLDER]`: make the pictures of the documentation, in about ten minutes.

Pictures of both widths, light and dark, go to the folder (default: a temporary one); those that pages of the
documentation show are copied to docs/images.
"""

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from tests.integration.browser import running_browser
from tests.pictures import console, dashboards, fleet

DOCS = Path(__file__).parents[2] / "docs"
COLOURS = 64
"""A picture in the documentation has no more: a third of its size."""


def main() -> None:
    """Start the fleet, let it run through a shift, and take the pictures."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures")
    parser.add_argument("folder", type=Path, nargs="?", default=Path(tempfile.gettempdir()) / "pictures")
    parser.add_argument("--minutes", type=float, default=8.0, help="of predictions (8)")
    parser.add_argument("--keep", action="store_true", help="leave the processes running until interrupted")
    parser.add_argument("--console-only", action="store_true", help="take no previews of dashboards")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, fleet.running_fleet(Path(home)) as running:
        sys.stdout.write(f"Prometheus: {running.prometheus}\n")
        sys.stdout.flush()
        fleet.send(running, minutes=arguments.minutes)
        with running_browser("--hide-scrollbars") as browser:
            # The dashboards first: their time range ends now.
            if not arguments.console_only:
                dashboards.take(running, browser, arguments.folder, minutes=arguments.minutes)
            console.take(running, browser, arguments.folder)
        while arguments.keep:
            time.sleep(1)
    shown = {
        name
        for page in DOCS.glob("*.md")
        for name in re.findall(r"images/((?:preview|console)-[\w-]+\.png)", page.read_text())
    }
    for name in shown:
        if not (arguments.folder / name).exists():
            continue  # this run took others
        with Image.open(arguments.folder / name) as picture:
            picture.convert("RGB").quantize(COLOURS).save(DOCS / "images" / name, optimize=True)


if __name__ == "__main__":
    main()
