"""The comparison of a population as JSON values, for the HTTP API and the command line."""

from typing import Any

from lifelong_core.store.performance.records import PopulationPerformance
from lifelong_core.store.performance.statements import (
    describe_class_mixes,
    describe_comparison,
    describe_warnings,
)


def performance_document(
    performance: PopulationPerformance, *, model: str, environment: str
) -> dict[str, Any]:
    """The comparison with its statements in words; `model` is name@version."""
    document = performance.to_document()
    for internal in ("schema_version", "inputs", "left_out"):
        del document[internal]
    return {
        "model": model,
        "environment": environment,
        "statements": [*describe_comparison(performance), *describe_class_mixes(performance.class_mixes)],
        "warnings": describe_warnings(performance),
        **document,
    }
