"""The parts of grafana-foundation-sdk that are used here, imported without their deprecation warnings.

The SDK warns on import that a second dashboard schema exists; Grafana still loads this one. Import the SDK from here
only: the first import raises the warning.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.builders import (
        bargauge,
        heatmap,
        prometheus,
        stat,
        statetimeline,
        table,
        timeseries,
    )
    from grafana_foundation_sdk.builders import common as common_builders
    from grafana_foundation_sdk.builders import dashboard as dashboard_builders
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import common, dashboard
    from grafana_foundation_sdk.models import heatmap as heatmap_models
    from grafana_foundation_sdk.models import prometheus as prometheus_models

__all__ = [
    "JSONEncoder",
    "bargauge",
    "common",
    "common_builders",
    "dashboard",
    "dashboard_builders",
    "heatmap",
    "heatmap_models",
    "prometheus",
    "prometheus_models",
    "stat",
    "statetimeline",
    "table",
    "timeseries",
]
