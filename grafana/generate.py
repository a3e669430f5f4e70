"""Write the dashboard: `python -m grafana.generate`; a test fails when the committed file is out of date."""

import sys
from pathlib import Path

from grafana.dashboard import build, to_json

DASHBOARD_FILE = Path(__file__).parent / "dashboards" / "lifelong.json"


def main() -> None:
    """Generate the file in place."""
    DASHBOARD_FILE.write_text(to_json(build()), encoding="utf-8")
    sys.stdout.write(f"wrote {DASHBOARD_FILE}\n")


if __name__ == "__main__":
    main()
