"""Benchmarks: `python -m benchmarks.NAME [--json] [--quick]`. They measure and never assert."""
