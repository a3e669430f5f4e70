"""The monitoring process: schedule, cycles, Prometheus exporter."""
