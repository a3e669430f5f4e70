"""The contract for values of metrics: metric_reference.json, beside the folder that LIFELONG_SHARED_DATA names."""

import json
import os
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("LIFELONG_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
# A missing file fails the collection of the tests: that nothing was compared must not look like success.
REFERENCE: dict[str, Any] = json.loads((DATA.parent / "metrics" / "metric_reference.json").read_text())
