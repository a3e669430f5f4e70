"""The contract for values of metrics: metric_reference.json, beside the folder that LIFELONG_SHARED_DATA names."""

import json
from typing import Any

from tests import tools

# Where the file misses, the modules that import this are skipped and counted; under CI their collection fails: that
# nothing was compared must not look like success.
REFERENCE: dict[str, Any] = json.loads(tools.reference("metric_reference.json").read_text())
