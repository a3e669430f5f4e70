"""Write the dashboards: `python -m grafana.generate`; a test fails when the committed files are out of date."""

import sys
from pathlib import Path

from grafana.boards import BOARDS
from grafana.dashboard import documents

DASHBOARDS = Path(__file__).parent / "dashboards"


def main() -> None:
    """Generate the files in place."""
    for name, text in documents(BOARDS).items():
        (DASHBOARDS / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {DASHBOARDS / name}\n")


if __name__ == "__main__":
    main()
