"""The parts of grafana-foundation-sdk that are used here, imported without their deprecation warnings.

The SDK warns on import that a second dashboard schema exists; Grafana still loads this one. Import the SDK from here
only: the first import raises the warning.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.builders import common as common_builders
    from grafana_foundation_sdk.builders import dashboard as dashboard_builders
    from grafana_foundation_sdk.builders import prometheus, stat, timeseries
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import common, dashboard

__all__ = [
    "JSONEncoder",
    "common",
    "common_builders",
    "dashboard",
    "dashboard_builders",
    "prometheus",
    "stat",
    "timeseries",
]
