"""The Prometheus exporter.

- `exporter`, `server`: metrics; HTTP server and access
- `status`, `population_metrics`: state of each population; when it is computed again
- `gauges`, `performance_gauges`, `rule_gauges`: how the series of a population follow from its state
"""
