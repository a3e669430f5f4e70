"""The Prometheus exporter.

- `exporter`, `server`, `scrape_access`: metrics, HTTP server, access
- `population_metrics`, `gauges`, `status`, `cycle_figures`: series of a population
- `job_metrics`, `proposal_metrics`: series of jobs; of proposed retrainings
"""
