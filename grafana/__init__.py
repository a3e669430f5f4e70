"""Dashboard, Prometheus configuration and alert rules; the dashboard is generated: `python -m grafana.generate`."""
